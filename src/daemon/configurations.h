// SPDX-License-Identifier: Apache-2.0
// The configurations of a controller: from the names and files that its operator gives, as notes
// of the journal, and from such notes again.
#pragma once

#include <cstdint>
#include <string>

#include "engine/configuration.h"
#include "scenario/preset.h"
#include "trainyard/cluster.h"
#include "trainyard/state.h"
#include "trainyard/status.h"

namespace trainyard::daemon {

// What a note holds. Its nodes are complete: no file is read for them again.
struct GivenConfiguration {
  std::uint64_t number = 0;
  std::string author{};   // who has made the change; empty: the options of a start
  double since = 0;       // Unix time
  std::string changes{};  // from the one before, in words
  // What the options of the last start ask for (Given), as a note without options: the next start
  // changes only what its options say otherwise than these.
  std::string options{};
  scenario::PresetRequest names{};
  std::string preset{};  // PresetContent; what `names.preset` gives must not have changed
  std::string models{};  // KnownModels::Digest; what --profiles gives must not have changed
  Cluster cluster{};

  void Serialize(StateStream& state);
  [[nodiscard]] std::string Note() const;
  // Error: the bytes are no note, or one of another version of the program.
  [[nodiscard]] static Result<GivenConfiguration> From(std::string_view note);
};

// The names and nodes as they are, also as `options`, without number and author. Errors: a preset
// or a cluster file that cannot be read.
[[nodiscard]] Result<GivenConfiguration> Given(const scenario::PresetRequest& names,
                                               const std::string& cluster);

// What TextOf has written, or somebody in its form; `path`: of the file, for messages.
[[nodiscard]] Result<GivenConfiguration> FromText(const std::string& path, std::string_view text);

// As TOML: names and nodes, those of `--cluster` by their hosts. Removed nodes are not in it.
[[nodiscard]] std::string TextOf(const GivenConfiguration& given);

// A merge of three: `present` with the differences between the options of the last start
// (`present.options`) and `asked`, in names, nodes and types of GPUs. The rest stays as it has been
// applied since.
[[nodiscard]] Result<GivenConfiguration> Merged(const GivenConfiguration& present,
                                                const GivenConfiguration& asked);

// "policy fifo, now srtf; node c added"; empty: both mean the same.
[[nodiscard]] std::string ChangesBetween(const GivenConfiguration& former,
                                         const GivenConfiguration& next);

class Configurations final : public engine::ConfigurationSource {
 public:
  // `profiles`: the folder or file of --profiles; empty: none.
  explicit Configurations(std::string profiles) : profiles_(std::move(profiles)) {}

  // Nodes of `present` that the note does not name are removed; new ones come behind them.
  // Errors: names that cannot be resolved, or do not go together or with the cluster; rules that no
  // live cluster can keep; other profiles than those of the note.
  [[nodiscard]] Result<engine::SharedConfiguration> Read(
      std::string_view note, const engine::Configuration& present) const override;
  [[nodiscard]] Result<engine::SharedConfiguration> Make(
      const engine::AskedConfiguration& asked, const engine::Configuration& present) const override;

 private:
  const std::string profiles_;
  // The last one, and what it says but for number, author and time: world and engine ask for the
  // same one after the other, and a start for the first one after its own. For one thread.
  mutable engine::SharedConfiguration last_;
  mutable std::string last_content_;
};

}  // namespace trainyard::daemon
