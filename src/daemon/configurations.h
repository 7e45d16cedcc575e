// SPDX-License-Identifier: Apache-2.0
// The configurations of a controller: from the names and files that its operator gives, as notes
// of the journal, and from such notes again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/configuration.h"
#include "scenario/preset.h"
#include "store/store.h"
#include "trainyard/cluster.h"
#include "trainyard/state.h"
#include "trainyard/status.h"

namespace trainyard::daemon {

// Throughput profiles and the like, as the operator names them, and which they were.
struct GivenProfiles {
  std::string path{};    // empty: there are none
  std::string digest{};  // of what lay there when it was taken; empty: it is to be taken

  void Serialize(StateStream& state) { state(path, digest); }
  friend bool operator==(const GivenProfiles&, const GivenProfiles&) = default;
};

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
  // KnownModels::Digest. In notes of 0.3.0 and earlier, which know no more of profiles, what
  // --profiles gives at the next start must have the same.
  std::string models{};
  GivenProfiles profiles{};
  Cluster cluster{};

  void Serialize(StateStream& state);
  [[nodiscard]] std::string Note() const;
  // Error: the bytes are no note, or one of another version of the program.
  [[nodiscard]] static Result<GivenConfiguration> From(std::string_view note);
};

// The names, nodes and profiles as they are, also as `options`, without number and author. Errors:
// a preset or a cluster file that cannot be read.
[[nodiscard]] Result<GivenConfiguration> Given(const scenario::PresetRequest& names,
                                               const std::string& cluster,
                                               const GivenProfiles& profiles = {});

// To be changed; null: there is none of that name. Cluster::PartitionOf is to look at one.
[[nodiscard]] Partition* FindPartition(Cluster& cluster, std::string_view name);

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
  // `profiles`: the folder or file of --profiles, for notes of 0.3.0 and earlier; empty: none.
  explicit Configurations(std::string profiles) : profiles_(std::move(profiles)) {}

  // Profiles are kept in the store from now on, those that have been taken included; it must
  // outlive this. Error: they cannot be.
  [[nodiscard]] Status KeepIn(store::Store& store);
  // What lies at the path now. Empty: there is none.
  [[nodiscard]] Result<GivenProfiles> Take(const std::string& path) const;

  // Nodes of `present` that the note does not name are removed; new ones come behind them.
  // Errors: names that cannot be resolved, or do not go together or with the cluster; rules that no
  // live cluster can keep; profiles that have not been taken, or are others than those of the note.
  [[nodiscard]] Result<engine::SharedConfiguration> Read(
      std::string_view note, const engine::Configuration& present) const override;
  [[nodiscard]] Result<engine::SharedConfiguration> Make(
      const engine::AskedConfiguration& asked, const engine::Configuration& present) const override;

 private:
  class Profiles;  // the files of one configuration

  [[nodiscard]] Result<std::string> Kept(const std::string& key) const;
  [[nodiscard]] Status Keep(const std::string& key, const std::string& packed) const;
  [[nodiscard]] Result<Profiles> ProfilesOf(const GivenConfiguration& given) const;
  [[nodiscard]] Result<std::shared_ptr<engine::Configuration>> Assemble(
      GivenConfiguration& given) const;

  const std::string profiles_;
  store::Store* store_ = nullptr;
  mutable std::map<std::string, std::string> taken_;  // packed, by key; where there is no store yet
  // The last one, and what it says but for number, author and time: world and engine ask for the
  // same one after the other, and a start for the first one after its own. For one thread.
  mutable engine::SharedConfiguration last_;
  mutable std::string last_content_;
};

}  // namespace trainyard::daemon
