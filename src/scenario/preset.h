// SPDX-License-Identifier: Apache-2.0
// Presets: named sets of rules under which policies give the numbers of a published program. A
// preset is data (presets/*.toml, built into the program, or a user's file); docs/presets.md lists
// the keys.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/rules.h"
#include "profile/goodput/application.h"
#include "profile/interleave.h"
#include "profile/overhead_model.h"
#include "profile/sensitivity.h"
#include "scenario/preset_file.h"
#include "trainyard/options.h"
#include "trainyard/plan.h"
#include "trainyard/status.h"

namespace trainyard::scenario {

enum class WorkUnit : unsigned char {
  // Job by job: iterations where it states its stages; else iterations where profiles are given,
  // durations otherwise.
  kAuto,
  kIterations,
  kDuration,
  kStages,       // iterations at the pace of the stage times that the trace states
  kSensitivity,  // iterations, at a rate that depends on CPUs and memory
  kLoader,       // iterations, at the pace of GPUs or loader workers: needs loader profiles
  kTrainings,    // statistical progress of trainings that adapt their batches: needs applications
};

// A preset applied to one policy: everything a run needs besides its inputs.
struct ResolvedPreset {
  model::Rules rules{};
  WorkUnit work = WorkUnit::kAuto;
  profile::GroupTimes::Rules stages{};
  profile::SensitivityRules sensitivity{};
  profile::TrainingRules trainings{};
  profile::OverheadModel overheads{};
  // Who is submitted within such a window is handed over at its start; zero: at the submit.
  Duration handover_window{0};
  bool early_handover = true;  // a trace may hand a job over before its submit
  bool uses_logged_end = false;
  bool exact_deadlines = false;
  std::optional<Walk> walk;  // instead of the policy's own
  double rate_factor = 1;    // how much faster jobs are than declared
  std::string track;         // "FIRST-LAST": rows whose ends end the run; empty: all
  // In the catalogues' own names.
  NamedOptions policy;
  NamedOptions placement;
  NamedOptions admission;
  std::optional<NamedOptions> tuning;
  std::optional<NamedOptions> grouping;
  std::string file_sha256{};  // of a user's file; empty: the preset is built in
};

struct PresetName {
  std::string name;     // the name under the preset
  std::string meaning;  // in the catalogues' names
};
struct PresetOption {
  std::string key;
  std::string fallback;
  std::string help;
};
struct PresetDescription {
  std::string name;
  std::string base;    // the preset that a user's file changes; empty: none
  std::string sha256;  // of a user's file
  std::string summary;
  std::string source;
  std::vector<PresetOption> options;
  std::vector<PresetName> policies;
  std::vector<PresetName> placements;
  std::vector<PresetName> admissions;
  std::string text;  // the file itself
};

// `name`: of a built-in preset, or the path of a file.
[[nodiscard]] Result<PresetDescription> DescribePreset(std::string_view name);

// What the user asked for, unparsed; an empty text means the preset's default.
struct PresetRequest {
  // "name", "name:key=value;...", or likewise the path of a file; empty: sound.
  std::string preset;
  std::string policy;
  std::string placement;
  std::string admission;
  std::string tuning{};    // of the catalogue; empty: none
  std::string grouping{};  // likewise

  friend bool operator==(const PresetRequest&, const PresetRequest&) = default;
};

// Names are looked up in the preset first, then in the catalogues. Errors: an unknown preset,
// option, or name (with a hint where another preset knows it), a preset file with a mistake.
[[nodiscard]] Result<ResolvedPreset> ResolvePreset(const PresetRequest& request);

// Seconds in the unit of time of the preset's traces, for formats that leave it open; 0: it says
// nothing. `preset`: as in PresetRequest.
[[nodiscard]] Result<double> TraceUnit(const std::string& preset);

// What results depend on: the text itself for a built-in preset, the digest of a file in place of
// its path. `preset`: as in PresetRequest. Errors: as of FindPreset for a file.
[[nodiscard]] Result<std::string> PresetContent(const std::string& preset);

}  // namespace trainyard::scenario
