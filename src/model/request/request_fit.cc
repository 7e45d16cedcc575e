// SPDX-License-Identifier: Apache-2.0
#include "model/request/request_fit.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <numeric>
#include <string_view>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"
#include "model/job_fields.h"
#include "model/request/node_request.h"
#include "model/request/request_book.h"
#include "model/resource_amounts.h"

namespace trainyard::model {

Resources NeedOn(const NodeSpec& node, const NodeRequest& request, int gpus, int of) {
  const auto part = [&](std::int64_t amount, Per per) {
    return per == Per::kNode  ? amount
           : per == Per::kGpu ? amount * gpus
           : of == 0          ? amount
                              : (amount * gpus + of - 1) / of;
  };
  Resources need{.milli_cpus = part(request.cpus.milli, request.cpus.per),
                 .memory_mib = part(request.memory.mib, request.memory.per)};
  if (request.exclusive) {
    need = Most(need,
                {.milli_cpus = node.capacity.milli_cpus, .memory_mib = node.capacity.memory_mib});
  }
  return need;
}

SpreadRules RulesFor(const Cluster& cluster, const NodeRequest& request) {
  const auto names_of = [](const std::string& list) {
    return list.empty() ? std::vector<std::string>() : base::ExpandNames(list).value();
  };
  const std::vector<std::string> listed = names_of(request.node_list);
  const std::vector<std::string> excluded = names_of(request.exclude);
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const Constraint constraint =
      request.constraint.empty() ? Constraint() : Constraint::Parse(request.constraint).value();
  SpreadRules rules{.open = {}, .nodes = request.nodes, .counted = {}};
  rules.open.reserve(cluster.nodes.size());
  for (const NodeSpec& node : cluster.nodes) {
    rules.open.push_back((listed.empty() || has(listed, node.name)) && !has(excluded, node.name) &&
                         constraint.Admits(node.labels) &&
                         (node.tmp_mib == 0 || node.tmp_mib >= request.tmp.mib));
  }
  int largest = 0;
  int together = 0;
  for (std::size_t i = 0; i < constraint.counted(); ++i) {
    std::vector<bool> meets;
    meets.reserve(cluster.nodes.size());
    for (const NodeSpec& node : cluster.nodes) {
      meets.push_back(constraint.Meets(i, node.labels));
    }
    rules.counted.emplace_back(constraint.CountOf(i), std::move(meets));
    largest = std::max(largest, constraint.CountOf(i));
    together += constraint.CountOf(i);
  }
  if (rules.nodes.least == 0 && !listed.empty()) {
    const int all = static_cast<int>(listed.size());
    rules.nodes = {.least = all, .most = all};
  } else if (rules.nodes.least == 0 && largest > 0) {
    rules.nodes = {.least = largest, .most = together};
  }
  return rules;
}

namespace {

// Chooses for one number of nodes.
class Spreading {
 public:
  Spreading(const SpreadRules& rules, int gpus, int nodes)
      : rules_(rules), nodes_(nodes), small_(gpus / nodes), large_parts_(gpus % nodes) {}

  // Every node gets `small_` GPUs, `large_parts_` of them one more. The tightest first; large parts
  // where they fit.
  [[nodiscard]] std::vector<std::pair<NodeId, int>> Choose(std::vector<NodeOffer> offers) {
    std::erase_if(offers, [this](const NodeOffer& one) { return one.most < small_; });
    std::stable_sort(offers.begin(), offers.end(),
                     [](const NodeOffer& a, const NodeOffer& b) { return a.order < b.order; });
    if (rules_.counted.empty()) {
      return Taken(offers, nodes_);
    }
    // By what they count for: how many to take of each kind is tried.
    std::map<unsigned, std::vector<NodeOffer>> kinds;
    for (const NodeOffer& one : offers) {
      unsigned kind = 0;
      for (std::size_t i = 0; i < rules_.counted.size(); ++i) {
        kind |= rules_.counted[i].second[Index(one.node)] ? 1U << i : 0U;
      }
      kinds[kind].push_back(one);
    }
    kinds_.assign(kinds.begin(), kinds.end());
    std::vector<NodeOffer> chosen;
    return TryFrom(0, nodes_, chosen);
  }

 private:
  using Choice = std::vector<std::pair<NodeId, int>>;

  // The first `count` that do, `large_parts_` of them with room for one more.
  [[nodiscard]] Choice Taken(const std::vector<NodeOffer>& offers, int count) const {
    Choice choice;
    std::vector<bool> used(offers.size());
    const auto take = [&](int parts, int gpus) {
      for (std::size_t i = 0; i < offers.size() && parts > 0; ++i) {
        if (!used[i] && offers[i].most >= gpus) {
          used[i] = true;
          choice.emplace_back(offers[i].node, gpus);
          --parts;
        }
      }
      return parts == 0;
    };
    if (!take(large_parts_, small_ + 1) || !take(count - large_parts_, small_)) {
      return {};
    }
    std::sort(choice.begin(), choice.end());
    return choice;
  }

  // `left` more nodes of the kinds from `at` on.
  [[nodiscard]] Choice TryFrom(std::size_t at, int left, std::vector<NodeOffer>& chosen) {
    if (at == kinds_.size()) {
      return left == 0 && MeetsCounts(chosen) ? Taken(chosen, nodes_) : Choice();
    }
    // Of a kind those with room for a large part go first, as only the number of the others counts.
    std::vector<NodeOffer> of_kind = kinds_[at].second;
    std::stable_partition(of_kind.begin(), of_kind.end(),
                          [this](const NodeOffer& one) { return one.most > small_; });
    const std::size_t before = chosen.size();
    for (int count = 0; count <= std::min<int>(left, static_cast<int>(of_kind.size())); ++count) {
      chosen.resize(before);
      chosen.insert(chosen.end(), of_kind.begin(), of_kind.begin() + count);
      if (Choice choice = TryFrom(at + 1, left - count, chosen); !choice.empty()) {
        return choice;
      }
    }
    chosen.resize(before);
    return {};
  }
  [[nodiscard]] bool MeetsCounts(const std::vector<NodeOffer>& chosen) const {
    return std::all_of(rules_.counted.begin(), rules_.counted.end(), [&](const auto& counted) {
      return std::count_if(chosen.begin(), chosen.end(), [&](const NodeOffer& one) {
               return counted.second[Index(one.node)];
             }) >= counted.first;
    });
  }

  const SpreadRules& rules_;
  const int nodes_;
  const int small_;
  const int large_parts_;
  std::vector<std::pair<unsigned, std::vector<NodeOffer>>> kinds_;
};

}  // namespace

std::vector<std::pair<NodeId, int>> Spread(const SpreadRules& rules, int gpus,
                                           const std::vector<NodeOffer>& offers) {
  const int most = std::min({rules.nodes.most, gpus, static_cast<int>(offers.size())});
  for (int nodes = rules.nodes.least; nodes <= most; ++nodes) {
    auto choice = Spreading(rules, gpus, nodes).Choose(offers);
    if (!choice.empty()) {
      return choice;
    }
  }
  return {};
}

int NodesOnCpus(const SpreadRules& rules) { return std::max(rules.nodes.least, 1); }

std::vector<NodeId> SpreadOnCpus(SpreadRules rules, const std::vector<NodeOffer>& offers) {
  const int nodes = NodesOnCpus(rules);
  rules.nodes = {.least = nodes, .most = nodes};
  std::vector<NodeId> chosen;
  chosen.reserve(static_cast<std::size_t>(nodes));
  for (const auto& [node, part] : Spread(rules, nodes, offers)) {
    chosen.push_back(node);
  }
  return chosen;
}

std::vector<std::pair<NodeId, int>> FewestNodes(const FreeGpus& free, int gpus) {
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < free.cluster().nodes.size(); ++i) {
    if (free.count(NodeAt(i)) > 0) {
      nodes.push_back(NodeAt(i));
    }
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&free](NodeId a, NodeId b) { return free.count(a) > free.count(b); });
  std::vector<std::pair<NodeId, int>> parts;
  for (std::size_t i = 0; i < nodes.size() && gpus > 0; ++i) {
    const int here = std::min(gpus, free.count(nodes[i]));
    parts.emplace_back(nodes[i], here);
    gpus -= here;
  }
  std::sort(parts.begin(), parts.end());
  return gpus == 0 ? parts : std::vector<std::pair<NodeId, int>>();
}

// -------------------------------------------------------------------------- what could never fit

namespace {

std::string GpusText(int gpus) { return std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs"); }

// A job's request against a cluster on which nothing runs.
class NeverFits {
 public:
  NeverFits(const Cluster& cluster, const JobSpec& job, const std::vector<bool>& may_lie)
      : cluster_(cluster),
        job_(job),
        request_(PartOf<NodeRequest>(job)),
        may_lie_(may_lie),
        rules_(RulesFor(cluster, request_)) {}

  [[nodiscard]] Status Check() {
    if (job_.gpus == 0 && ((request_.cpus.milli > 0 && request_.cpus.per == Per::kGpu) ||
                           (request_.memory.mib > 0 && request_.memory.per == Per::kGpu))) {
      return InvalidArgument(
          "it asks for CPUs or memory of each GPU and for no GPUs; expected them for the job, or "
          "for each node");
    }
    Note(CheckNames(request_.node_list, "names"));
    Note(CheckNames(request_.exclude, "excludes"));
    Note(CheckNodeCount());
    const bool nodes_are_known = faults_.empty();
    Note(CheckLicenses());
    if (!nodes_are_known) {
      NoteSums();
    } else if (const Status open = CheckOpen(); !open.ok()) {
      Note(open);
    } else {
      NoteRoom();
    }
    return faults_.empty() ? Status() : InvalidArgument(faults_);
  }

 private:
  void Note(const Status& status) {
    if (!status.ok()) {
      faults_ += (faults_.empty() ? "" : "\n") + status.error().message;
    }
  }

  [[nodiscard]] Status CheckNames(const std::string& list, std::string_view does) const {
    if (list.empty()) {
      return {};
    }
    const std::vector<std::string> names = base::ExpandNames(list).value();
    for (const std::string& name : names) {
      const bool is_there =
          std::any_of(cluster_.nodes.begin(), cluster_.nodes.end(),
                      [&name](const NodeSpec& node) { return node.name == name; });
      if (!is_there) {
        std::vector<std::string_view> known;
        for (const NodeSpec& node : cluster_.nodes) {
          known.push_back(node.name);
        }
        const std::string_view nearest = base::NearestName(name, known);
        return InvalidArgument(
            "it " + std::string(does) + " node '" + name + "', which the cluster has not" +
            (nearest.empty() ? "; expected one of its nodes"
                             : "; did you mean '" + std::string(nearest) + "'?"));
      }
    }
    return {};
  }

  [[nodiscard]] Status CheckLicenses() const {
    if (request_.licenses.empty()) {
      return {};
    }
    const std::vector<License> named = ParseLicenses(request_.licenses).value();
    for (const License& one : named) {
      const auto known =
          std::find_if(cluster_.licenses.begin(), cluster_.licenses.end(),
                       [&one](const License& other) { return other.name == one.name; });
      if (known == cluster_.licenses.end()) {
        std::string names;
        for (const License& other : cluster_.licenses) {
          names += (names.empty() ? "" : ", ") + other.name;
        }
        return InvalidArgument(
            "it asks for licences '" + one.name + "', which the cluster has not; " +
            (names.empty() ? "its configuration has no [[licenses]]" : "it has " + names));
      }
      if (known->count < one.count) {
        return InvalidArgument("it asks for " + std::to_string(one.count) + " licences '" +
                               one.name + "'; the cluster has " + std::to_string(known->count));
      }
    }
    return {};
  }

  [[nodiscard]] Status CheckNodeCount() const {
    if (job_.gpus > 0 && rules_.nodes.least > job_.gpus) {
      const std::string by = request_.nodes.least > 0     ? ""
                             : request_.node_list.empty() ? ", by '" + request_.constraint + "',"
                                                          : ", by '" + request_.node_list + "',";
      return InvalidArgument("it asks for " + std::to_string(rules_.nodes.least) + " nodes" + by +
                             " and " + GpusText(job_.gpus) +
                             "; expected a GPU for each of its nodes at least");
    }
    return {};
  }

  // Whether any node is left by names, labels, types and partition.
  [[nodiscard]] Status CheckOpen() {
    open_ = 0;
    for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
      open_ += MayLie(i) ? 1 : 0;
    }
    if (open_ > 0) {
      return {};
    }
    std::string why;
    const auto add = [&why](const std::string& name, const std::string& value) {
      if (!value.empty()) {
        why += (why.empty() ? " " : ", ") + name + " '" + value + "'";
      }
    };
    add("node list", request_.node_list);
    add("exclude", request_.exclude);
    add("constraint", request_.constraint);
    if (request_.tmp.mib > 0) {
      std::int64_t most = 0;
      for (const NodeSpec& node : cluster_.nodes) {
        most = std::max(most, node.tmp_mib);
      }
      add("space for temporary files", MibText(request_.tmp.mib));
      why += " (the most of a node is " + MibText(most) + ")";
    }
    std::string labels;
    for (const std::string& label : LabelsThereAre()) {
      labels += (labels.empty() ? "" : ", ") + label;
    }
    return InvalidArgument("none of the nodes that it may have" +
                           (job_.queue.empty() ? std::string() : " in '" + job_.queue + "'") +
                           " meets" + why +
                           (request_.constraint.empty() ? ""
                            : labels.empty()            ? "; no node has a label"
                                                        : "; labels that there are: " + labels));
  }

  [[nodiscard]] std::vector<std::string> LabelsThereAre() const {
    std::vector<std::string> labels;
    for (const NodeSpec& node : cluster_.nodes) {
      labels.insert(labels.end(), node.labels.begin(), node.labels.end());
    }
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    return labels;
  }

  [[nodiscard]] bool MayLie(std::size_t node) const { return may_lie_[node] && rules_.open[node]; }

  // With so much of the request: the GPUs that it could have of each node that is left.
  [[nodiscard]] std::vector<NodeOffer> Offers(const NodeRequest& part) const {
    const RequestBook empty(cluster_);
    std::vector<NodeOffer> offers;
    for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
      const int most = !MayLie(i) ? 0
                       : job_.gpus == 0
                           ? (empty.HasRoomOnCpus(part, NodeAt(i), NodesOnCpus(rules_)) ? 1 : 0)
                           : empty.MostGpus(part, job_.gpus, NodeAt(i), cluster_.nodes[i].gpus);
      if (most > 0) {
        offers.push_back({.node = NodeAt(i), .most = most, .order = 0});
      }
    }
    return offers;
  }
  [[nodiscard]] bool Fits(const NodeRequest& part) const {
    const std::vector<NodeOffer> offers = Offers(part);
    if (job_.gpus == 0) {
      return !SpreadOnCpus(rules_, offers).empty();
    }
    if (rules_.nodes.least > 0) {
      return !Spread(rules_, job_.gpus, offers).empty();
    }
    return GpusOf(offers) >= job_.gpus;
  }
  static int GpusOf(const std::vector<NodeOffer>& offers) {
    return std::accumulate(offers.begin(), offers.end(), 0,
                           [](int sum, const NodeOffer& one) { return sum + one.most; });
  }

  // What all nodes have together, where it cannot be said on which of them the job would lie.
  void NoteSums() {
    Resources all;
    bool states_cpus = true;
    bool states_memory = true;
    for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
      if (may_lie_[i]) {
        const Resources& has = cluster_.nodes[i].capacity;
        states_cpus = states_cpus && has.milli_cpus > 0;
        states_memory = states_memory && has.memory_mib > 0;
        all.milli_cpus += has.milli_cpus;
        all.memory_mib += has.memory_mib;
      }
    }
    const auto in_all = [this](std::int64_t amount, Per per) {
      return per == Per::kGpu    ? amount * job_.gpus
             : per == Per::kNode ? amount * std::max(1, request_.nodes.least)
                                 : amount;
    };
    if (states_cpus && in_all(request_.cpus.milli, request_.cpus.per) > all.milli_cpus) {
      Note(TooMuchInAll(TextOf(request_.cpus) + " CPUs",
                        TextOf(CpuRequest{.milli = all.milli_cpus})));
    }
    if (states_memory && in_all(request_.memory.mib, request_.memory.per) > all.memory_mib) {
      Note(TooMuchInAll(TextOf(request_.memory) + " of memory", MibText(all.memory_mib)));
    }
  }
  [[nodiscard]] static Error TooMuchInAll(const std::string& what, const std::string& has) {
    return InvalidArgument("it asks for " + what + "; the nodes that it may have have " + has +
                           " in all");
  }

  // Which part of the request is too much: GPUs on such nodes, CPUs, memory, or all together.
  void NoteRoom() {
    if (Fits(request_)) {
      return;
    }
    if (!Fits({})) {
      Note(job_.gpus == 0 ? TooManyNodes() : TooManyGpus());
      NoteSums();
    } else {
      Note(TooLittleBeside());
    }
  }
  // REQUIRES: there are the GPUs and nodes that it asks for.
  [[nodiscard]] Error TooLittleBeside() const {
    if (!Fits({.cpus = request_.cpus, .memory = {}, .nodes = {}})) {
      const NodeSpec& most =
          Nearest(NodesAtLeast(), [](const NodeSpec& node) { return node.capacity.milli_cpus; });
      return TooMuch(TextOf(request_.cpus) + " CPUs", most,
                     TextOf(CpuRequest{.milli = most.capacity.milli_cpus}) + " CPUs");
    }
    if (!Fits({.cpus = {}, .memory = request_.memory, .nodes = {}})) {
      const NodeSpec& most =
          Nearest(NodesAtLeast(), [](const NodeSpec& node) { return node.capacity.memory_mib; });
      return TooMuch(TextOf(request_.memory) + " of memory", most,
                     MibText(most.capacity.memory_mib));
    }
    return InvalidArgument("it asks for " + TextOf(request_.cpus) + " CPUs and " +
                           TextOf(request_.memory) + " of memory" + BesideText() +
                           "; no nodes that it may have have all of it together");
  }

  // "4 GPUs on 2 nodes, evenly"
  [[nodiscard]] std::string GangText() const {
    return GpusText(job_.gpus) +
           (rules_.nodes.least == 0  ? ""
            : rules_.nodes.most == 1 ? " on one node"
                                     : " on " + TextOf(rules_.nodes) + " nodes, evenly") +
           (rules_.counted.empty() ? ""
                                   : ", so many of them as '" + request_.constraint + "' says") +
           (job_.queue.empty() ? "" : " in '" + job_.queue + "'");
  }

  [[nodiscard]] std::string BesideText() const {
    const int nodes = NodesOnCpus(rules_);
    return job_.gpus > 0 ? " beside " + GangText()
           : nodes == 1  ? ""
                         : " on " + std::to_string(nodes) + " nodes";
  }

  [[nodiscard]] Error TooManyNodes() const {
    return InvalidArgument("it asks for " + std::to_string(NodesOnCpus(rules_)) +
                           " nodes and may have " + std::to_string(open_) + " of them");
  }

  [[nodiscard]] Error TooManyGpus() const {
    int gpus = 0;
    for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
      gpus += MayLie(i) ? cluster_.nodes[i].gpus : 0;
    }
    const NodeSpec& largest = Nearest(1, [](const NodeSpec& node) { return node.gpus; });
    return InvalidArgument(
        "it asks for " + GangText() + "; the " + std::to_string(open_) +
        (open_ == 1 ? " node that it may have has " : " nodes that it may have have ") +
        std::to_string(gpus) +
        (open_ == 1 ? "" : ", the largest, " + largest.name + ", " + std::to_string(largest.gpus)));
  }

  [[nodiscard]] Error TooMuch(const std::string& what, const NodeSpec& most,
                              const std::string& has) const {
    const int nodes = NodesAtLeast();
    return InvalidArgument(
        "it asks for " + what + BesideText() +
        (nodes > 1 ? "; the " + std::to_string(nodes) + " of its nodes that have the most have " +
                         has + " each or more"
                   : "; the most that one of its nodes has, " + most.name + ", is " + has +
                         (job_.gpus > 0 ? " and " + GpusText(most.gpus) : "")));
  }
  [[nodiscard]] int NodesAtLeast() const {
    return std::clamp(rules_.nodes.least, 1, std::max(open_, 1));
  }

  // Of so many nodes that have the most of it, the one that has the least. REQUIRES: so many nodes
  // are open to the job.
  template <typename AmountOf>
  [[nodiscard]] const NodeSpec& Nearest(int count, AmountOf amount_of) const {
    std::vector<const NodeSpec*> nodes;
    for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
      if (MayLie(i)) {
        nodes.push_back(&cluster_.nodes[i]);
      }
    }
    std::stable_sort(nodes.begin(), nodes.end(), [&](const NodeSpec* a, const NodeSpec* b) {
      return amount_of(*a) > amount_of(*b);
    });
    return *nodes[static_cast<std::size_t>(count) - 1];
  }

  const Cluster& cluster_;
  const JobSpec& job_;
  const NodeRequest& request_;
  const std::vector<bool>& may_lie_;
  const SpreadRules rules_;
  int open_ = 0;
  std::string faults_;  // a line each
};

}  // namespace

Status CanBeMet(const Cluster& cluster, const JobSpec& job, const std::vector<bool>& may_lie) {
  if (job.gpus > 0 && (!job.traits || !job.traits->request)) {
    return {};
  }
  RETURN_IF_ERROR(CheckTexts(PartOf<NodeRequest>(job)));
  return NeverFits(cluster, job, may_lie).Check();
}

}  // namespace trainyard::model
