// SPDX-License-Identifier: Apache-2.0
// What was run beside the policies that label the runs: what all runs share, what one has alone.

import type { Run, Setting } from "./data";

const has = (run: Run, { name, value }: Setting): boolean =>
  run.settings.some((own) => own.name === name && own.value === value);

export const sharedSettings = (runs: readonly Run[]): Setting[] =>
  (runs[0]?.settings ?? []).filter((setting) => runs.every((run) => has(run, setting)));

export const otherSettings = (run: Run, shared: readonly Setting[]): Setting[] =>
  run.settings.filter(({ name }) => !shared.some((one) => one.name === name));

export const settingText = ({ name, value }: Setting): string => `${name} ${value}`;
