// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cpu_jobs.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <optional>
#include <set>
#include <utility>

#include "model/job_fields.h"
#include "model/resource_amounts.h"

namespace trainyard::scheduler {
namespace {

// What is on the nodes beside jobs without GPUs.
struct WithGpus {
  explicit WithGpus(const Cluster& cluster) : book(cluster), used(cluster.nodes.size(), 0) {}

  model::RequestBook book;
  std::vector<std::uint64_t> used;  // by node: the GPUs that are held
};

// Jobs of one kind have room on the same nodes.
struct Kind {
  NodeRequest request;
  model::NodeClassSet classes = 0;
  std::vector<NodeId> avoided;
  friend auto operator<=>(const Kind&, const Kind&) = default;  // NOLINT
};
struct KindState {
  model::SpreadRules rules;   // `open` where it may lie by whatever does not change
  bool has_no_place = false;  // as has been found in this decision
};

}  // namespace

// One decision.
class CpuJobs::Stage {
 public:
  Stage(const SchedulerContext& context, Selection& selection, const Bundle& bundle)
      : context_(context),
        selection_(selection),
        with_gpus_(context.cluster),
        book_(context.cluster),
        kept_free_(context.cluster.nodes.size(), false) {
    CountJobsWithGpus(bundle);
    book_ = with_gpus_.book;
  }

  void Keep(const std::vector<JobId>& in_order);
  void Start();

 private:
  void CountJobsWithGpus(const Bundle& bundle);
  void CountAsStated(JobId job, const Grant& grant, bool packs);
  void CountAsGiven(const Grant& grant);
  [[nodiscard]] bool Keep(JobId job, bool may_lie);
  void Place(JobId job, const std::vector<NodeId>& nodes);
  [[nodiscard]] KindState& KindOf(const JobSpec& job);
  [[nodiscard]] std::vector<NodeId> PlaceFor(const JobSpec& job, const KindState& kind,
                                             const model::RequestBook& book) const;
  [[nodiscard]] int OrderOf(std::size_t node, const Resources& need) const;
  void KeepFreeFor(const JobSpec& job, const KindState& kind);

  const SchedulerContext& context_;
  Selection& selection_;
  WithGpus with_gpus_;
  model::RequestBook book_;  // of all
  std::map<Kind, KindState> kinds_;
  std::vector<JobId> without_place_;  // in their order
  std::vector<bool> kept_free_;       // by node: for the first job that has no room
  bool keeps_free_ = false;
};

// As the selection leaves them.
void CpuJobs::Stage::CountJobsWithGpus(const Bundle& bundle) {
  std::vector<const Grant*> grants(context_.jobs.size(), nullptr);
  for (const JobId job : context_.jobs.running()) {
    grants[Index(job)] = &context_.jobs[job].grant;
  }
  for (const JobId job : selection_.dropped) {
    grants[Index(job)] = nullptr;
  }
  for (const Placed& placed : selection_.placed) {
    grants[Index(placed.job)] = &placed.grant;
  }
  for (std::size_t i = 0; i < grants.size(); ++i) {
    if (grants[i] == nullptr || grants[i]->gpus == 0) {
      continue;
    }
    if (bundle.honours_requests()) {
      CountAsStated(JobAt(i), *grants[i], bundle.packer != nullptr);
    } else if (bundle.tuning != nullptr) {
      CountAsGiven(*grants[i]);
    }
    for (const Slice& slice : grants[i]->slices) {
      with_gpus_.used[Index(slice.node)] |= slice.gpus;
    }
  }
  if (bundle.honours_requests() || bundle.tuning != nullptr) {
    return;
  }
  for (std::size_t i = 0; i < with_gpus_.used.size(); ++i) {  // jobs may share these
    const NodeSpec& node = context_.cluster.nodes[i];
    if (with_gpus_.used[i] != 0 && node.gpus > 0) {
      with_gpus_.book.Take(NodeAt(i),
                           model::ProportionalShare(node, std::popcount(with_gpus_.used[i])));
    }
  }
}

// Of a group that shares its GPUs, the first is for all; a GPU of collocated jobs counts once. A
// packer gives more than jobs state.
void CpuJobs::Stage::CountAsStated(JobId job, const Grant& grant, bool packs) {
  const JobSpec& spec = *context_.jobs[job].spec;
  if (grant.sharing == Sharing::kCollocated) {
    Slices more = grant.slices;
    for (Slice& slice : more) {
      slice.gpus &= ~with_gpus_.used[Index(slice.node)];
    }
    std::erase_if(more, [](const Slice& slice) { return slice.gpus == 0; });
    with_gpus_.book.Add(spec, more);
  } else if (grant.group.empty() || grant.group.front() == job) {
    packs ? with_gpus_.book.AddGiven(spec, grant.slices) : with_gpus_.book.Add(spec, grant.slices);
  }
}

void CpuJobs::Stage::CountAsGiven(const Grant& grant) {
  for (const Slice& slice : grant.slices) {
    with_gpus_.book.Take(slice.node, slice.soft);
  }
}

void CpuJobs::Stage::Keep(const std::vector<JobId>& in_order) {
  for (const JobId job : context_.jobs.cpu_finishing()) {
    const model::JobRecord& record = context_.jobs[job];
    if (model::IsNoRequeue(*record.spec)) {  // whether it fits or not
      book_.Add(*record.spec, record.grant.slices);
    } else if (!Keep(job, true)) {
      selection_.dropped.push_back(job);
    }
  }
  for (const JobId job : in_order) {
    const Slices& slices = context_.jobs[job].grant.slices;
    const bool may_lie = std::all_of(slices.begin(), slices.end(), [this](const Slice& slice) {
      return context_.nodes_up[Index(slice.node)];
    });
    if (slices.empty() || !Keep(job, may_lie)) {
      without_place_.push_back(job);
    }
  }
}

bool CpuJobs::Stage::Keep(JobId job, bool may_lie) {
  const model::JobRecord& record = context_.jobs[job];
  const bool keeps = may_lie && book_.Fits(*record.spec, record.grant.slices);
  if (keeps) {
    book_.Add(*record.spec, record.grant.slices);
  }
  return keeps;
}

// Also those that have just lost their place: elsewhere.
void CpuJobs::Stage::Start() {
  for (const JobId job : without_place_) {
    const model::JobRecord& record = context_.jobs[job];
    KindState& kind = KindOf(*record.spec);
    const std::vector<NodeId> nodes =
        kind.has_no_place ? std::vector<NodeId>() : PlaceFor(*record.spec, kind, book_);
    if (!nodes.empty()) {
      Place(job, nodes);
      continue;
    }
    if (record.grant.holds()) {
      selection_.dropped.push_back(job);
    }
    if (!kind.has_no_place) {
      kind.has_no_place = true;
      KeepFreeFor(*record.spec, kind);
    }
  }
}

void CpuJobs::Stage::Place(JobId job, const std::vector<NodeId>& nodes) {
  const JobSpec& spec = *context_.jobs[job].spec;
  Placed placed{.job = job};
  for (const NodeId node : nodes) {
    placed.grant.slices.push_back(
        {.node = node,
         .soft = model::RequestBook::OnCpus(context_.cluster.nodes[Index(node)],
                                            model::PartOf<NodeRequest>(spec),
                                            static_cast<int>(nodes.size()))});
  }
  book_.Add(spec, placed.grant.slices);
  selection_.placed.push_back(std::move(placed));
}

KindState& CpuJobs::Stage::KindOf(const JobSpec& job) {
  const std::vector<NodeId>& avoided = model::PartOf<JobTraits>(job).avoided;
  const NodeRequest& request = model::PartOf<NodeRequest>(job);
  const model::NodeClasses& classes = context_.choices.classes();
  const model::NodeClassSet accepted = classes.Accepted(job);
  const auto [kind, is_new] = kinds_.try_emplace({request, accepted, avoided});
  if (is_new) {
    model::SpreadRules& rules = kind->second.rules;
    rules = model::RulesFor(context_.cluster, request);
    for (std::size_t i = 0; i < rules.open.size(); ++i) {
      rules.open[i] = rules.open[i] && context_.nodes_up[i] && classes.Has(accepted, NodeAt(i)) &&
                      !std::binary_search(avoided.begin(), avoided.end(), NodeAt(i));
    }
  }
  return kind->second;
}

// Empty: there is none.
std::vector<NodeId> CpuJobs::Stage::PlaceFor(const JobSpec& job, const KindState& kind,
                                             const model::RequestBook& book) const {
  const NodeRequest& request = model::PartOf<NodeRequest>(job);
  if (!book.HasLicensesFor(request)) {
    return {};
  }
  const int nodes = model::NodesOnCpus(kind.rules);
  std::vector<model::NodeOffer> offers;
  for (std::size_t i = 0; i < kind.rules.open.size(); ++i) {
    if (kind.rules.open[i] && !kept_free_[i] && book.HasRoomOnCpus(request, NodeAt(i), nodes)) {
      const Resources need = model::RequestBook::OnCpus(context_.cluster.nodes[i], request, nodes);
      offers.push_back({.node = NodeAt(i), .most = 1, .order = OrderOf(i, need)});
    }
  }
  return model::SpreadOnCpus(kind.rules, offers);
}

// First the nodes on which free GPUs keep their share of CPUs and memory, the fullest first; then
// the others, the emptiest first: a job with GPUs is least likely to need the place.
int CpuJobs::Stage::OrderOf(std::size_t node, const Resources& need) const {
  constexpr std::int64_t kMostMilli = 1 << 29;
  const NodeSpec& spec = context_.cluster.nodes[node];
  const int free = spec.gpus - std::popcount(with_gpus_.used[node]);
  Resources left = book_.LeftOn(NodeAt(node));
  left -= need;
  const auto milli = static_cast<int>(std::clamp<std::int64_t>(left.milli_cpus, 0, kMostMilli));
  const Resources share = free > 0 ? model::ProportionalShare(spec, free) : Resources();
  return model::HasRoom(spec, left,
                        {.milli_cpus = share.milli_cpus, .memory_mib = share.memory_mib})
             ? milli
             : static_cast<int>(2 * kMostMilli - 1) - milli;
}

// As other jobs without GPUs end there, it has room at last.
void CpuJobs::Stage::KeepFreeFor(const JobSpec& job, const KindState& kind) {
  if (keeps_free_) {
    return;
  }
  for (const NodeId node : PlaceFor(job, kind, with_gpus_.book)) {
    kept_free_[Index(node)] = true;
    keeps_free_ = true;
  }
}

void CpuJobs::AddTo(Selection& selection, const Bundle& bundle,
                    const std::vector<JobId>& in_order) const {
  Stage stage(context_, selection, bundle);
  stage.Keep(in_order);
  stage.Start();
}

}  // namespace trainyard::scheduler
