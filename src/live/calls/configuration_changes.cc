// SPDX-License-Identifier: Apache-2.0
#include "live/calls/configuration_changes.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/toml.h"
#include "live/calls/validation.h"
#include "model/node_classes.h"

namespace trainyard::live {
namespace {

constexpr std::size_t kMostText = 16 << 20;  // a line for each of 100,000 nodes, and more

void PutGrant(const Grant& grant, const Cluster& cluster,
              google::protobuf::RepeatedPtrField<std::string>& nodes) {
  for (const Slice& slice : grant.slices) {
    *nodes.Add() = cluster.nodes[Index(slice.node)].name;
  }
}

// What a job meets in the next configuration though no decision changes its GPUs; empty: nothing.
class Remarks {
 public:
  // `resizes`: the next policy gives jobs other numbers of GPUs than they ask for.
  Remarks(const Cluster& present, const Cluster& next, bool resizes)
      : present_(present), next_(next), resizes_(resizes), classes_(present), next_classes_(next) {}

  [[nodiscard]] std::string On(const model::JobRecord& record) const {
    const JobSpec& job = *record.spec;
    if (record.grant.holds()) {
      return classes_.InPartition(job, record.grant.slices) &&
                     !next_classes_.InPartition(job, record.grant.slices)
                 ? "runs on until it ends, outside its partition" + Named(job.queue)
                 : std::string();
    }
    const int gpus = next_classes_.GpusOf(next_classes_.Accepted(job));
    if (!resizes_ && gpus < job.gpus && classes_.GpusOf(classes_.Accepted(job)) >= job.gpus) {
      return fmt::format(
          "could not start any more: it asks for {} GPUs, and the nodes that it may have are left "
          "with {}",
          job.gpus, gpus);
    }
    return present_.PartitionOf(job.queue) != nullptr && next_.PartitionOf(job.queue) == nullptr
               ? "waits on, " +
                     (next_.PartitionOf("") != nullptr
                          ? "in the default partition '" + next_.PartitionOf("")->name + "'"
                          : std::string("for every node")) +
                     ": there is no partition" + Named(job.queue) + " any more"
               : std::string();
  }

 private:
  static std::string Named(const std::string& queue) {
    return queue.empty() ? std::string() : " '" + queue + "'";
  }

  const Cluster& present_;
  const Cluster& next_;
  const bool resizes_;
  const model::NodeClasses classes_;
  const model::NodeClasses next_classes_;
};

std::string AuthorOf(const engine::Configuration& present) {
  return present.author.empty() ? "the controller's options" : present.author;
}

}  // namespace

Status ConfigurationChanges::Check(const Call& call, const v1::ConfigureRequest& request) const {
  if (!(request.rehearse() ? call.principal.MayOperate() : call.principal.MayAdminister())) {
    return PermissionDenied(
        call.principal.text() +
        (request.rehearse() ? " may not ask what would change; expected an operator or an admin"
                            : " may not change the configuration; expected an admin"));
  }
  if (request.text().size() > kMostText) {
    return InvalidArgument(fmt::format("the configuration has {} bytes; expected at most {}",
                                       request.text().size(), kMostText));
  }
  return {};
}

Status ConfigurationChanges::CheckNumber(const v1::ConfigureRequest& request) const {
  const engine::Configuration& present = *context_.state().configuration;
  if (request.has_expected() && request.expected() != present.number) {
    return FailedPrecondition(
        fmt::format("configuration {} is in force by now, since {} by {}: {}; expected {}, as "
                    "--check-index or the top of the file says (--force "
                    "does not ask)",
                    present.number, base::UtcText(present.since), AuthorOf(present),
                    present.changes, request.expected()));
  }
  return {};
}

Result<Reply> ConfigurationChanges::Configure(const Call& call,
                                              const v1::ConfigureRequest& request) {
  RETURN_IF_ERROR(Check(call, request));
  const LiveState& state = context_.state();
  const Result<engine::SharedConfiguration> made = engine_.MakeConfiguration(
      {.name = request.name().empty() ? "the configuration" : request.name(),
       .text = request.text(),
       .author = call.principal.text_with_role(),
       .since = state.options.UnixSeconds(state.now)},
      *state.configuration);
  if (!made.ok()) {
    return InvalidArgument(made.error().message);
  }
  const engine::SharedConfiguration& next = made.value();
  v1::ConfigureReply reply;
  if (!next->changes.empty()) {  // otherwise it is so already, whoever has made it so
    RETURN_IF_ERROR(CheckNumber(request));
    RETURN_IF_ERROR(CheckJobs(state, *next));
    ASSIGN_OR_RETURN(reply, EffectsOf(next));
  }
  reply.set_changes(next->changes);
  reply.set_paused(state.switches.paused.on);
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    const LiveNode& node = state.nodes[NodeAt(i)];
    const int gpus = next->cluster.nodes[i].gpus;
    if (node.connection && gpus > 0 && gpus != node.hello.gpus() &&
        gpus != state.cluster.nodes[i].gpus) {
      reply.add_agents_to_restart(state.cluster.nodes[i].name);
    }
  }
  const bool applies = !request.rehearse() && !next->changes.empty();
  if (applies) {
    Apply(next);
  }
  reply.set_number(context_.state().configuration->number);
  return Reply([reply = std::move(reply)]() -> std::optional<v1::ClientReply> {
    v1::ClientReply answer;
    *answer.mutable_configure() = reply;
    return answer;
  });
}

Status ConfigurationChanges::Admit(const v1::Hello& hello) {
  const LiveState& state = context_.state();
  if (engine::NodesThere(state.cluster) >= state.options.open_nodes) {
    return Failed(fmt::format(
        "node '{}' is not in the controller's cluster{}", hello.node(),
        state.options.open_nodes == 0
            ? "; 'trainyard node add' adds it"
            : fmt::format(", which has all {} nodes of --open-nodes", state.options.open_nodes)));
  }
  std::string text = state.configuration->text +
                     "\n[[nodes]]\nhost = " + io::TomlString(hello.node()) +
                     "\ngpus = " + std::to_string(hello.gpus()) + "\n";
  if (!hello.gpu_type().empty()) {
    text += "gpu_type = " + io::TomlString(hello.gpu_type()) + "\n";
  }
  ASSIGN_OR_RETURN(const engine::SharedConfiguration next,
                   engine_.MakeConfiguration({.name = "the configuration with node " + hello.node(),
                                              .text = std::move(text),
                                              .author = "the agent of " + hello.node(),
                                              .since = state.options.UnixSeconds(state.now)},
                                             *state.configuration));
  Apply(next);
  return {};
}

// What a fork of the engine does at this instant with the configuration in force.
Result<v1::ConfigureReply> ConfigurationChanges::EffectsOf(
    const engine::SharedConfiguration& next) const {
  const LiveState& state = context_.state();
  const std::unique_ptr<engine::Engine> fork = engine_.Fork();
  const Result<std::span<const model::Action>> actions = fork->Step(
      {.now = state.now,
       .events = {{.at = state.now, .fact = model::fact::Configured{.note = next->note}}}});
  if (!actions.ok()) {
    return FailedPrecondition("the first decision by that configuration is refused: " +
                              actions.error().message);
  }
  std::set<JobId> jobs;
  for (const model::Action& action : actions.value()) {
    if (action.kind != model::ActionKind::kPace && action.kind != model::ActionKind::kTune) {
      jobs.insert(action.job);
    }
  }
  v1::ConfigureReply reply;
  for (const JobId job : jobs) {
    const Grant& before = engine_.records()[Index(job)].grant;
    const Grant& after = fork->records()[Index(job)].grant;
    if (before == after) {
      continue;
    }
    v1::JobEffect& effect = *reply.add_effects();
    effect.set_job(state.numbers.Of(job));
    effect.set_gpus_before(before.gpus);
    effect.set_gpus_after(after.gpus);
    PutGrant(before, engine_.cluster(), *effect.mutable_nodes_before());
    PutGrant(after, fork->cluster(), *effect.mutable_nodes_after());
  }
  const Remarks remarks(state.cluster, next->cluster, next->traits.may.resize);
  for (std::size_t i = 0; i < engine_.records().size(); ++i) {  // it does not know the newest jobs
    if (jobs.contains(JobAt(i)) || state.jobs[JobAt(i)].ending) {
      continue;
    }
    if (std::string remark = remarks.On(engine_.records()[i]); !remark.empty()) {
      v1::JobEffect& effect = *reply.add_effects();
      effect.set_job(state.numbers.Of(JobAt(i)));
      effect.set_remark(std::move(remark));
    }
  }
  return reply;
}

// Agents that are connected, with the GPUs that the nodes have from now on, serve at once.
void ConfigurationChanges::Apply(const engine::SharedConfiguration& next) {
  context_.Add(model::fact::Configured{.note = next->note});
  const LiveState& state = context_.state();
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    const NodeId id = NodeAt(i);
    if (state.cluster.nodes[i].gpus > 0 && state.nodes.MayOpen(id)) {
      context_.Add(model::fact::NodeUp{.node = id});
    }
  }
}

}  // namespace trainyard::live
