// SPDX-License-Identifier: Apache-2.0
// What becomes of jobs when nodes come and go.
#include <algorithm>
#include <vector>

#include "engine/engine.h"
#include "model/job_fields.h"

namespace trainyard::engine {

class Engine::NodeChange {
 public:
  NodeChange(Engine& engine, NodeId node) : engine_(engine), nodes_(engine.nodes_), node_(node) {}

  void Take(const model::Event& event);

 private:
  void Open(const model::Event& event);
  void Cordon(const model::Event& event);
  void TakeAway(const model::Event& event);
  void Preempt(JobId job, bool loses_work);
  void TellScheduler(bool with_jobs);
  [[nodiscard]] bool NamesGpus() const { return engine_.parts_->scheduler.traits().may.name_gpus; }

  Engine& engine_;
  NodesUp& nodes_;
  const NodeId node_;
};

void Engine::TakeNode(const model::Event& event) { NodeChange(*this, event.node()).Take(event); }

void Engine::NodeChange::Take(const model::Event& event) {
  switch (event.kind()) {
    case model::EventKind::kNodeUp:
      return Open(event);
    case model::EventKind::kNodeCordoned:
      return Cordon(event);
    default:
      return TakeAway(event);
  }
}

// Jobs that have been finishing on the node are the policy's again, as they are.
void Engine::NodeChange::Open(const model::Event& event) {
  if (nodes_[node_] || IsRemoved(engine_.cluster().nodes[Index(node_)])) {
    return;
  }
  nodes_.Set(node_, true, engine_.cluster());
  const std::vector<JobId> jobs = nodes_.JobsOn(node_);  // finishing, as the node was not up
  for (const JobId job : jobs) {
    if (!nodes_.Finishes(job, engine_.parts_->choices.classes())) {
      engine_.jobs_.ReturnToPolicy(job);
    } else if (NamesGpus() && !model::IsNoRequeue(*engine_.jobs_.At(job).spec)) {
      Preempt(job, false);
    }
  }
  TellScheduler(!jobs.empty());
  for (const JobId job : jobs) {
    if (engine_.jobs_.At(job).grant.holds() && !engine_.jobs_.IsFinishing(job)) {
      engine_.parts_->scheduler.Note(job, scheduler::JobChange::kReturned, engine_.now_);
    }
  }
  engine_.parts_->instants.AddFact(event.at);
}

// Jobs that can be left alone finish there.
void Engine::NodeChange::Cordon(const model::Event& event) {
  if (!nodes_[node_]) {
    return;
  }
  std::vector<JobId> finishing = nodes_.JobsOn(node_);
  std::erase_if(finishing, [&](JobId job) {
    const bool may_finish =
        engine_.jobs_.IsFinishing(job) || nodes_.MayFinishOn(node_, job, NamesGpus());
    if (!may_finish) {
      Preempt(job, false);
    }
    return !may_finish;
  });
  nodes_.Set(node_, false, engine_.cluster());
  for (const JobId job : finishing) {
    if (!engine_.jobs_.IsFinishing(job)) {
      engine_.parts_->scheduler.Note(job, scheduler::JobChange::kLeft, engine_.now_);
      engine_.jobs_.LeaveAlone(job);
    }
  }
  TellScheduler(!finishing.empty());
  engine_.parts_->instants.AddFact(event.at);
}

// The node is down, or drained at once.
void Engine::NodeChange::TakeAway(const model::Event& event) {
  const bool was_up = nodes_[node_];
  const std::vector<JobId> lost = nodes_.JobsOn(node_);
  if (!was_up && lost.empty()) {
    return;
  }
  const bool loses_work = event.kind() == model::EventKind::kNodeDown;
  for (const JobId job : lost) {
    Preempt(job, loses_work);
  }
  if (loses_work) {  // a node that is drained keeps what it has
    engine_.parts_->charges.data().Clear(node_);
  }
  nodes_.Set(node_, false, engine_.cluster());
  if (was_up) {
    TellScheduler(false);
  }
  engine_.parts_->instants.AddFact(event.at);
}

void Engine::NodeChange::Preempt(JobId job, bool loses_work) {
  ++engine_.jobs_[job].preemptions;
  engine_.TakeGpus(job, loses_work);
}

// `with_jobs`: jobs go on there, and others than before may schedule them.
void Engine::NodeChange::TellScheduler(bool with_jobs) {
  if (with_jobs) {
    engine_.parts_->scheduler.Refill();
  } else {
    engine_.parts_->scheduler.SetUp(node_, nodes_[node_]);
  }
}

}  // namespace trainyard::engine
