// SPDX-License-Identifier: Apache-2.0
#include "live/view/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "base/text.h"
#include "live/jobs/job_request.h"
#include "model/job_fields.h"
#include "model/request/node_request.h"
#include "model/request/request_fit.h"
#include "supervisor/processes.h"

namespace trainyard::live {
namespace {

// "1 job", "5 jobs"
std::string JobsText(std::size_t count) {
  return count == 1 ? "1 job" : fmt::format("{} jobs", count);
}

// A job without GPUs.
std::string WhyNotOnCpus(const JobSpec& job) {
  const std::string asks = model::TextOf(model::PartOf<NodeRequest>(job));
  return "no room for " + (asks.empty() ? "1 CPU" : asks) +
         " beside the jobs with GPUs, which come first, and those that run";
}

}  // namespace

bool MaySee(const ClusterView& view, const service::Principal& principal, JobId job) {
  return view.options->shows_all_jobs ||
         principal.May(service::Access::kSee, *view.job(job).live.request);
}

std::string FirstNames(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += (text.empty() ? "" : ", ") + names[i];
  }
  return names.size() > kMost ? text + " and " + std::to_string(names.size() - kMost) + " more"
                              : text;
}

std::vector<Leaving> LeavingOn(const ClusterView& view, NodeId node, TimePoint now) {
  std::vector<Leaving> leaving;
  for (const auto& [key, gpus] : view.node(node).holders) {
    const LiveAttempt* const attempt = view.Find(key);
    if (attempt != nullptr && !attempt->stopping) {
      continue;
    }
    Leaving one{.job = key.first, .gpus = gpus};
    if (attempt != nullptr && attempt->told_to_stop) {
      const double grace =
          Seconds(view.options->GraceOf(*view.job(*view.Find(key.first)).live.request));
      const double since = Seconds(now - attempt->notice) / view.options->time_scale;
      one.left_s = std::max(0.0, grace - since);
    }
    leaving.push_back(one);
  }
  return leaving;
}

Reasons::Reasons(const ClusterView& view, TimePoint now, service::Principal asker, Depth depth)
    : view_(view), now_(now), asker_(std::move(asker)), depth_(depth) {}

const model::JobRecord& Reasons::RecordOf(JobId job) const { return view_.job(job).record; }

std::string Reasons::NameOf(JobId job) const {
  return Sees(job) ? "job " + view_.TextOf(job) : "another user's job";
}

std::string Reasons::RealTimeText(Duration of_the_engine) const {
  return base::ShortDuration(Seconds(of_the_engine) / view_.options->time_scale);
}

// -------------------------------------------------------------------------------- what is looked
// up

const std::vector<std::uint64_t>& Reasons::used() {
  if (!used_) {
    used_.emplace(view_.nodes.size(), 0);
    for (const JobId job : *view_.holders) {
      for (const Slice& slice : RecordOf(job).grant.slices) {
        (*used_)[Index(slice.node)] |= slice.gpus;
      }
    }
  }
  return *used_;
}

bool Reasons::MayLieOn(const JobSpec& job, NodeId node) const {
  const std::vector<std::string>& types = model::PartOf<JobTraits>(job).gpu_types;
  return classes().Has(classes().OpenTo(job.queue), node) &&
         (types.empty() || model::NamesType(types, view_.cluster().nodes[Index(node)].gpu_type));
}

// "A100 GPUs", "A100 or V100 GPUs of partition 'long'", "GPUs"; as many as there are.
std::string Reasons::GpusFor(const JobSpec& job, int count) const {
  const std::vector<std::string>& types = model::PartOf<JobTraits>(job).gpu_types;
  const std::string_view noun = count == 1 ? "GPU" : "GPUs";
  const std::string gpus =
      types.empty() ? std::string(noun) : fmt::format("{} {}", model::TypesText(types), noun);
  const Partition* const named = view_.cluster().PartitionOf(job.queue);
  const Partition* const partition = named != nullptr ? named : view_.cluster().PartitionOf("");
  return partition == nullptr || partition->has_all_nodes
             ? gpus
             : gpus + " of partition '" + partition->name + "'";
}

Reasons::Room& Reasons::RoomFor(const JobSpec& job) {
  const auto& request = model::PartOf<NodeRequest>(job);
  const NodeRequest nodes{.tmp = request.tmp,
                          .node_list = request.node_list,
                          .exclude = request.exclude,
                          .constraint = request.constraint};
  const auto [at, is_new] =
      rooms_.try_emplace({model::PartOf<JobTraits>(job).gpu_types,
                          view_.cluster().partitions.empty() ? std::string() : job.queue, nodes});
  Room& room = at->second;
  const std::vector<bool> open = is_new && nodes != NodeRequest{}
                                     ? model::RulesFor(view_.cluster(), nodes).open
                                     : std::vector<bool>();  // all of them
  for (std::size_t i = 0; is_new && i < view_.nodes.size(); ++i) {
    const NodeEntry& node = view_.node(NodeAt(i));
    const NodeSpec& spec = view_.cluster().nodes[i];
    if (node.available && !node.drained && MayLieOn(job, NodeAt(i)) && (open.empty() || open[i])) {
      const int free = spec.gpus - std::popcount(used()[i]);
      room.free += free;
      room.all += spec.gpus;
      room.most = std::max(room.most, free);
    }
  }
  return room;
}

// Among the jobs that wait, from 0. Nothing: the policy keeps no order, or the job is not in it.
std::optional<std::size_t> Reasons::PlaceOf(JobId job) {
  if (!order_) {
    order_ = *view_.order;
    std::erase_if(*order_, [this](JobId other) {
      const model::JobPhase phase = RecordOf(other).phase.get();  // has changed since, perhaps
      return phase != model::JobPhase::kWaiting && phase != model::JobPhase::kArrived;
    });
    places_.assign(view_.jobs.size(), 0);
    for (std::size_t i = 0; i < order_->size(); ++i) {
      places_[Index((*order_)[i])] = static_cast<std::uint32_t>(i + 1);
    }
  }
  const std::uint32_t place = places_[Index(job)];
  return place == 0 ? std::nullopt : std::optional<std::size_t>(place - 1);
}

// ------------------------------------------------------------------------------------------
// waiting

// Why its user or its own terms keep the job back; empty: they do not.
std::string Reasons::WhyDeferred(JobId id) const {
  const std::optional<engine::Deferral> deferral = view_.DeferralOf(id);
  if (view_.job(id).held) {
    const std::string holder = view_.job(id).holder;
    return "held by " + (holder.empty() ? "its user" : holder) + "; 'trainyard release " +
           view_.TextOf(id) + "' lets it go on";
  }
  if (!deferral) {
    return {};
  }
  if (!deferral->never.empty()) {
    return deferral->never + "; 'trainyard update --dependency' gives it another, or 'trainyard " +
           "cancel' ends it";
  }
  if (deferral->after) {
    return "waits for " + NameOf(*deferral->after) + ", by its dependency '" +
           model::PartOf<JobTraits>(*RecordOf(id).spec).dependency + "'";
  }
  if (deferral->begin && *deferral->begin > now_) {
    return "begins in " + RealTimeText(*deferral->begin - now_);
  }
  return deferral->at_once > 0
             ? "at most " + std::to_string(deferral->at_once) + " tasks of its array run at a time"
             : "not yet admitted";
}

// Where the policy serves in strict order: what the first waiting job is waiting for.
std::string Reasons::WhyItWaits(JobId id) {
  if (std::string why = WhyDeferred(id); !why.empty()) {
    return why;
  }
  if (view_.switches.paused.on) {
    return WhyPaused();
  }
  const model::Blocked* const blocked = view_.BlockedOf(id);
  const bool behind = blocked != nullptr && blocked->reason == model::WaitReason::kBehindHead &&
                      !view_.job(id).holding && view_.job(id).failures.why_held.empty();
  if (!behind) {
    return WhyNotServed(id, /*is_head=*/false);
  }
  const std::vector<model::Blocked>& all = *view_.blocked;
  const model::NodeClassSet nodes = classes().Accepted(*RecordOf(id).spec);
  const auto head = std::find_if(all.begin(), all.end(), [&](const model::Blocked& other) {
    return other.reason != model::WaitReason::kBehindHead &&
           (classes().Accepted(*RecordOf(other.first).spec) & nodes) != 0;
  });
  if (head == all.end()) {
    return "behind an earlier job" + WhoIsAhead(id);
  }
  const bool may_pass = view_.configuration->bundle.ordering_walk().misfit ==
                        Misfit::kReserve;  // if it delays nobody
  return Sees(head->first)
             ? (may_pass ? "would delay " : "behind ") + NameOf(head->first) + ", which asks for " +
                   GpusText(head->gpus) + ": " + WhyNotServed(head->first, /*is_head=*/true)
             : "behind another user's job, which the policy serves first" + WhoIsAhead(id);
}

// REQUIRES: decisions are paused.
std::string Reasons::WhyPaused() const {
  return "no decisions are made: " +
         TextOf(MessageOf(view_.switches, *view_.options).paused(), "paused");
}

// `is_head`: it is the first in the order, as has been said.
std::string Reasons::WhyNotServed(JobId id, bool is_head) {
  const model::JobRecord& record = RecordOf(id);
  if (view_.job(id).holding) {
    return "holds " + std::to_string(record.grant.gpus) + " of " +
           std::to_string(record.spec->gpus) + " GPUs until it has them all";
  }
  if (const std::string& held = view_.job(id).failures.why_held; !held.empty()) {
    return held + (view_.job(id).failures.has_no_node_left ? NodesAway(*record.spec) : "");
  }
  const JobSpec& spec = *record.spec;
  const int gpus = classes().GpusOf(classes().Accepted(spec));
  if (gpus < spec.gpus && !view_.configuration->traits.may.resize) {
    return fmt::format("cannot start: it asks for {} {}, and there are {}", spec.gpus,
                       GpusFor(spec), gpus);
  }
  if (spec.gpus == 0 || model::PartOf<JobTraits>(spec).request) {
    std::vector<bool> may_lie;
    may_lie.reserve(view_.cluster().nodes.size());
    for (std::size_t i = 0; i < view_.cluster().nodes.size(); ++i) {
      may_lie.push_back(MayLieOn(spec, NodeAt(i)));
    }
    if (const Status met = model::CanBeMet(view_.cluster(), spec, may_lie); !met.ok()) {
      const std::string& faults = met.error().message;  // the first of them is enough here
      return "cannot start: " + faults.substr(0, faults.find('\n'));
    }
  }
  const model::Blocked* const blocked = view_.BlockedOf(id);
  const std::string why = spec.gpus == 0       ? WhyNotOnCpus(spec)
                          : blocked == nullptr ? WhyLeftOut(id)
                                               : WhyBlocked(id, *blocked);
  const std::string& avoids = view_.job(id).failures.why_avoids;
  return why + (is_head ? "" : WhoIsAhead(id)) + NodesAway(*record.spec) +
         (avoids.empty() ? "" : "; ") + avoids;
}

std::string Reasons::WhyBlocked(JobId id, const model::Blocked& blocked) {
  const JobSpec& spec = *RecordOf(id).spec;
  const std::string asks = model::TextOf(model::PartOf<NodeRequest>(spec));
  switch (blocked.reason) {
    case model::WaitReason::kResources: {
      if (asks.empty()) {
        return "not enough CPUs or memory beside free GPUs: others have asked for them";
      }
      const std::string none =
          fmt::format("no room for {} {} with {}", spec.gpus, GpusFor(spec, spec.gpus), asks);
      return depth_ == Depth::kBrief
                 ? none + ", though enough GPUs are free"
                 : fmt::format("{}: {} of {} {} are free", none, RoomFor(spec).free,
                               RoomFor(spec).all, GpusFor(spec));
    }
    case model::WaitReason::kGpus:
      return NotEnough(spec);
    case model::WaitReason::kLocality:
      return asks.empty() && depth_ == Depth::kBrief
                 ? "no place for " + GpusText(spec.gpus) + " together"
                 : NotEnough(spec);
    case model::WaitReason::kBehindHead:
      return "behind an earlier job";
    case model::WaitReason::kNever:
      return fmt::format("does not fit into the cluster: it asks for {} {}", spec.gpus,
                         GpusFor(spec));
  }
  return {};
}

// "not enough free A100 GPUs: 2 of 8 free, it asks for 3 with 1 CPU"
std::string Reasons::NotEnough(const JobSpec& job) {
  const std::string asks = model::TextOf(model::PartOf<NodeRequest>(job));
  const std::string with = asks.empty() ? "" : " with " + asks;
  if (depth_ == Depth::kBrief) {
    return asks.empty()
               ? "not enough free " + GpusFor(job)
               : fmt::format("no place for {} {}{}", job.gpus, GpusFor(job, job.gpus), with);
  }
  const Room& room = RoomFor(job);
  return room.free < job.gpus
             ? fmt::format("not enough free {}: {} of {} free, it asks for {}{}", GpusFor(job),
                           room.free, room.all, job.gpus, with)
             : fmt::format("no place for {} {}{}: {} of {} {} are free, at most {} on one node",
                           job.gpus, GpusFor(job, job.gpus), with, room.free, room.all,
                           GpusFor(job), room.most);
}

// "; 4 jobs are ahead of it, first job 7, which asks for 2 GPUs"; empty: the policy keeps no order.
std::string Reasons::WhoIsAhead(JobId id) {
  if (depth_ == Depth::kBrief) {
    return {};
  }
  const std::optional<std::size_t> place = PlaceOf(id);
  if (!place) {
    return {};
  }
  std::vector<JobId> ahead(order_->begin(), order_->begin() + static_cast<std::ptrdiff_t>(*place));
  if (!view_.cluster().partitions.empty()) {  // who waits for other nodes is not ahead
    const model::NodeClassSet nodes = classes().Accepted(*RecordOf(id).spec);
    std::erase_if(ahead, [&](JobId other) {
      return (classes().Accepted(*RecordOf(other).spec) & nodes) == 0;
    });
  }
  if (ahead.empty()) {
    return "; it is the next in line";
  }
  const JobId first = ahead.front();
  return "; " + JobsText(ahead.size()) + (ahead.size() == 1 ? " is" : " are") + " ahead of it" +
         (ahead.size() == 1 ? ": " : ", first ") + NameOf(first) +
         (Sees(first) ? ", which asks for " + GpusText(RecordOf(first).spec->gpus) : "");
}

const std::string& Reasons::WhoIsServed(const JobSpec& job) {
  std::optional<std::string>& served = RoomFor(job).served;
  if (!served) {
    served = HoldersText(job);
  }
  return *served;
}

// The jobs that have GPUs where it could run: "jobs 1, 2 and 3 more".
std::string Reasons::HoldersText(const JobSpec& job) const {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> names;
  std::size_t others = 0;
  for (const JobId holder : *view_.holders) {
    const Slices& slices = RecordOf(holder).grant.slices;
    if (std::any_of(slices.begin(), slices.end(),
                    [&](const Slice& slice) { return MayLieOn(job, slice.node); })) {
      if (Sees(holder) && names.size() < kMost) {
        names.push_back(view_.TextOf(holder));
      } else {
        ++others;
      }
    }
  }
  if (names.empty()) {
    return others == 0 ? "" : JobsText(others) + " of other users";
  }
  const bool one = names.size() == 1 && others == 0;
  return (one ? "job " : "jobs ") + fmt::format("{}", fmt::join(names, ", ")) +
         (others == 0 ? "" : fmt::format(" and {} more", others));
}

// The policy has no demand of its for the job, and says itself which jobs it serves when.
std::string Reasons::WhyLeftOut(JobId id) {
  const JobSpec& spec = *RecordOf(id).spec;
  const std::string policy = "policy '" + view_.configuration->policy + "'";
  if (std::string why = WhyNotItsDevices(spec); !why.empty()) {
    return why;
  }
  if (depth_ == Depth::kBrief) {
    return policy + " serves other jobs first";
  }
  const Room& room = RoomFor(spec);
  const std::string served = WhoIsServed(spec);
  if (room.free < spec.gpus) {
    return NotEnough(spec) +
           (served.empty() ? "" : "; " + policy + " serves " + served + " before it");
  }
  std::string text = fmt::format("{} of {} {} are free, it asks for {}: {} ", room.free, room.all,
                                 GpusFor(spec), spec.gpus, policy);
  const std::optional<TimePoint> next = view_.next_wakeup;
  text += served.empty() ? "has not planned it yet" : "plans it for later, behind " + served;
  return text + (next && *next > now_
                     ? ", and decides again in " + RealTimeText(*next - now_)
                     : std::string(", and decides again when a job comes or ends"));
}

// Under a policy that gives jobs the GPUs that they name.
std::string Reasons::WhyNotItsDevices(const JobSpec& job) {
  const Slices& devices = model::PartOf<JobTraits>(job).devices;
  if (devices.empty() || !view_.configuration->traits.needs.named_devices) {
    return {};
  }
  std::string text = "waits for the GPUs that it names:";
  for (const Slice& slice : devices) {
    text += " " + DevicesText(slice, view_.cluster());
    for (const JobId holder : *view_.holders) {
      const Slices& held = RecordOf(holder).grant.slices;
      if (std::any_of(held.begin(), held.end(), [&slice](const Slice& other) {
            return other.node == slice.node && (other.gpus & slice.gpus) != 0;
          })) {
        text += " (" + NameOf(holder) + " is there)";
      }
    }
  }
  return text;
}

// "; drained: n0; silent: n1; down: n2, n3; with another number of GPUs: n4": the nodes that are
// away and whose GPUs the job may have.
std::string Reasons::NodesAway(const JobSpec& job) const {
  std::vector<std::string> drained;
  std::vector<std::string> silent;
  std::vector<std::string> down;
  std::vector<std::string> other;
  for (std::size_t i = 0; i < view_.nodes.size(); ++i) {
    const NodeEntry& node = view_.node(NodeAt(i));
    const NodeSpec& spec = view_.cluster().nodes[i];
    if (engine::IsRemoved(spec)) {
      continue;
    }
    if (node.connected && node.reported->hello.gpus() != spec.gpus) {
      other.push_back(spec.name);
    } else if ((node.drained || !node.available) && MayLieOn(job, NodeAt(i))) {
      (node.drained ? drained : node.alive ? silent : down).push_back(spec.name);
    }
  }
  return (drained.empty() ? "" : "; drained: " + FirstNames(drained)) +
         (silent.empty() ? "" : "; silent: " + FirstNames(silent)) +
         (down.empty() ? "" : "; down: " + FirstNames(down)) +
         (other.empty() ? "" : "; with another number of GPUs: " + FirstNames(other));
}

// -------------------------------------------------------------------------------- starting,
// running

// Why a job with GPUs does not run, or may have stopped running; empty: nothing is known.
std::string Reasons::WhyNotRunning(JobId job) const {
  const std::vector<LiveAttempt>& list = view_.job(job).attempts.list;
  if (list.empty()) {
    return {};
  }
  if (const std::vector<std::string> silent = NodesOf(list.back(), /*only_silent=*/true);
      !silent.empty()) {
    return "no word from " + FirstNames(silent);
  }
  if (list.size() > 1) {
    const std::string places = FirstNames(NodesOf(list.front(), /*only_silent=*/false));
    const std::string why = WhyNotGone(job);
    return "its earlier workers have not left" + (places.empty() ? "" : " " + places) + " yet" +
           (why.empty() ? "" : ": " + why);
  }
  const std::string other = WhoHasNotLeft(list.back());
  return other.empty() ? WhatItFetches(job) : other;
}

// "n0 is draining until 2026-11-28T18:00:00Z: then the job goes on elsewhere", "runs until it ends,
// outside its partition 'long'"; empty: it may stay, and run there again.
std::string Reasons::WhenItHasToLeave(JobId job) const {
  for (const Slice& slice : view_.job(job).record.grant.slices) {
    const NodeEntry& node = view_.node(slice.node);
    const TimePoint until = node.finish_until.value_or(kEndOfTime);
    if (until != kEndOfTime) {
      return view_.cluster().nodes[Index(slice.node)].name + " is draining until " +
             base::UtcText(view_.options->UnixSeconds(until)) + ": then the job goes on elsewhere";
    }
  }
  const model::JobRecord& record = RecordOf(job);
  if (classes().InPartition(*record.spec, record.grant.slices)) {
    return {};
  }
  const std::string& queue = record.spec->queue;
  return view_.cluster().PartitionOf(queue) == nullptr
             ? "runs until it ends: there is no partition '" + queue + "' any more"
             : "runs until it ends, outside its partition '" + queue + "'";
}

// The nodes on which the attempt may have processes, or those of them that say nothing.
std::vector<std::string> Reasons::NodesOf(const LiveAttempt& attempt, bool only_silent) const {
  std::vector<std::string> names;
  for (const Part& part : attempt.parts) {
    if (part.state != PartState::kExited && (!only_silent || view_.IsSilent(part.node, now_))) {
      names.push_back(view_.cluster().nodes[Index(part.node)].name);
    }
  }
  return names;
}

// "job 28 has not left n1 yet": its processes may still be on GPUs that the attempt is to have;
// empty: nobody's are.
std::string Reasons::WhoHasNotLeft(const LiveAttempt& attempt) const {
  for (const Part& part : attempt.parts) {
    if (part.state != PartState::kQueued) {
      continue;
    }
    for (const auto& [key, gpus] : view_.node(part.node).holders) {
      const LiveAttempt* const other = view_.Find(key);
      if ((gpus & part.gpus) != 0 && (other == nullptr || !attempt.MayShareWith(*other))) {
        // A stray's is perhaps one that is not known.
        const std::optional<JobId> job = view_.Find(key.first);
        return (job ? NameOf(*job) : "job " + std::to_string(key.first)) + " has not left " +
               view_.cluster().nodes[Index(part.node)].name + " yet";
      }
    }
  }
  return {};
}

// "fetches data set imagenet onto n0, 40 %"; empty: all that is to be there is.
std::string Reasons::WhatItFetches(JobId job) const {
  constexpr double kPercent = 100;
  std::string text;
  for (const Part& part : view_.job(job).attempts.list.back().parts) {
    if (part.state == PartState::kQueued && part.data == PartData::kFetching) {
      text += text.empty()
                  ? "fetches data set " + view_.job(job).live.request->data_set().name() + " onto "
                  : ", onto ";
      text += view_.cluster().nodes[Index(part.node)].name + ", " +
              std::to_string(static_cast<int>(part.fetched * kPercent)) + " %";
    }
  }
  return text;
}

// What is wrong with a job whose workers run; empty: nothing, as far as is known. Jobs that never
// report progress are not flagged.
std::string Reasons::WhyNoProgress(JobId id) const {
  constexpr Duration kShortest = std::chrono::minutes(1);
  constexpr int kPatience = 3;  // times the longest step so far
  const LiveJob& job = view_.job(id).live;
  const LiveAttempt* const attempt = view_.job(id).attempts.wanted();
  if (attempt == nullptr) {
    return {};
  }
  for (const Part& part : attempt->parts) {
    if (!part.late.empty()) {
      return part.late;
    }
  }
  const double iterations = std::max(job.iterations_seen, job.iterations_saved);
  if (!attempt->has_run || job.is_emulated() || iterations <= 0) {
    return {};
  }
  const Duration without = now_ - attempt->progressed.value_or(attempt->ran_from);
  return without < std::max(view_.options->Scaled(kShortest), job.longest_step * kPatience)
             ? ""
             : "no progress for " + RealTimeText(without) + " (iteration " +
                   std::to_string(std::llround(iterations)) + ")";
}

// Empty: it has not run longer than it has stated.
std::string Reasons::WhyOverrun(JobId id) const {
  const v1::JobRequest& request = *view_.job(id).live.request;
  if (!view_.job(id).overrun) {
    return {};
  }
  if (view_.job(id).live.counts_work()) {
    return fmt::format("has overrun its {:.0f} iterations", request.iterations());
  }
  return request.has_duration_s()
             ? "has overrun its stated duration of " + base::ShortDuration(request.duration_s())
             : "";
}

// Why a job that has lost its GPUs still has workers.
std::string Reasons::WhyNotGone(JobId id) const {
  for (const LiveAttempt& attempt : view_.job(id).attempts.list) {
    if (attempt.told_to_stop && !attempt.is_over()) {
      const Duration since = now_ - attempt.notice;
      const Duration grace = view_.options->GraceOf(*view_.job(id).live.request);
      const std::string within = base::ShortDuration(Seconds(grace));
      const std::string had = fmt::format("had notice {} ago", RealTimeText(since));
      if (since <= view_.options->Scaled(grace + view_.options->margin)) {
        return fmt::format("{}: it saves itself and leaves, or is killed after {}", had, within);
      }
      const std::vector<std::string> silent = NodesOf(attempt, /*only_silent=*/true);
      return silent.empty() ? fmt::format(
                                  "{} and has not left {} within {}; the agent's output "
                                  "there says why",
                                  had, FirstNames(NodesOf(attempt, false)), within)
                            : fmt::format("{}; no word from {}", had, FirstNames(silent));
    }
  }
  return {};
}

std::string Reasons::Of(JobId id, v1::JobState state) {
  const LiveJob& job = view_.job(id).live;
  switch (state) {
    case v1::SUBMITTED:
      return view_.switches.paused.on ? "not yet admitted; " + WhyPaused() : "not yet admitted";
    case v1::WAITING:
      return WhyItWaits(id);
    case v1::STARTING:
      if (view_.job(id).queued && view_.starts_from && *view_.starts_from > now_) {
        return "all starts wait: the same fault on several nodes: " + view_.why_starts_wait;
      }
      return WhyNotRunning(id);
    case v1::RUNNING: {
      if (std::string why = WhyNotRunning(id); !why.empty()) {
        return why;
      }
      if (std::string why = WhyNoProgress(id); !why.empty()) {
        return why;
      }
      std::string why = WhyOverrun(id);
      return why.empty() ? WhenItHasToLeave(id) : why;
    }
    case v1::STOPPING:
      return WhyNotGone(id);
    case v1::FAILED:
      return job.reason.empty() ? "a worker ended with exit code " + std::to_string(job.exit_code)
                                : job.reason;
    default:
      return job.reason;
  }
}

}  // namespace trainyard::live
