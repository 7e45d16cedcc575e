// SPDX-License-Identifier: Apache-2.0
// Names and colours of users, queues and models where they are parts of a chart.

import { CATEGORIES, type Categories, REST } from "./ganttModel";
import { type Theme, categoryColor } from "./theme";

export const ownerName = (name: string | null): string =>
  name === null ? "All others" : name === "" ? "Not stated" : name;

export interface Owner {
  category: number;
  name: string;
}

/** In the order of their categories, all others last. */
export function ownersOf({ names, hasRest }: Categories): Owner[] {
  const owners = names.map((name, category) => ({ category, name: ownerName(name) }));
  return hasRest ? [...owners, { category: REST, name: ownerName(null) }] : owners;
}

export const ownerColor = (theme: Theme, category: number): string =>
  category >= CATEGORIES ? theme.axis : categoryColor(theme, category);
