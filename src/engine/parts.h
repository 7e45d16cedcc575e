// SPDX-License-Identifier: Apache-2.0
// The parts of an engine that follow from its configuration. With another configuration all of them
// are made anew from the records of the jobs, so that none has to hear what has changed.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/books/charges.h"
#include "engine/books/ends.h"
#include "engine/books/grants.h"
#include "engine/books/ledger.h"
#include "engine/configuration.h"
#include "engine/instants.h"
#include "engine/job_views.h"
#include "model/job_records.h"
#include "profile/measured_model.h"
#include "scheduler/node_choices.h"
#include "scheduler/scheduler.h"

namespace trainyard::engine {

// How the run goes on: progress, costs, the holders of GPUs, ends, instants, and the scheduler.
struct Parts {
  // `records` and `up` (by node) must outlive it. `book`: what has been measured; nothing: nothing
  // is corrected.
  Parts(std::shared_ptr<const Configuration> with, std::optional<profile::MeasuredBook> book,
        model::JobRecords& records, const std::vector<bool>& up);

  // What has been measured; nothing: nothing is corrected.
  [[nodiscard]] std::optional<profile::MeasuredBook> book() const {
    return measured == nullptr ? std::nullopt : std::optional(measured->book());
  }
  // The job's stages as they have been measured, and what follows from its specification then: how
  // fast it is, and what changes of it cost.
  void Relearn(model::JobRecords& records, JobId job) const;
  // Error: a component breaks its contract, the job may not hold that beside what is held.
  [[nodiscard]] Status CheckGrant(const model::JobRecords& records, JobId job, const Grant& grant);

  const std::shared_ptr<const Configuration> configuration;
  const std::unique_ptr<profile::MeasuredModel> measured;  // null: none
  const ExecutionModel& rates;  // as stated, and corrected by what has been measured
  Ends ends;
  Ledger ledger;
  Charges charges;
  Grants grants;
  JobViews views;
  Instants instants;
  scheduler::NodeChoices choices;
  scheduler::Scheduler scheduler;
};

}  // namespace trainyard::engine
