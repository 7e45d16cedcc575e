// SPDX-License-Identifier: Apache-2.0
#include "engine/parts.h"

#include <utility>

namespace trainyard::engine {
namespace {

std::unique_ptr<profile::MeasuredModel> CorrectedBy(std::optional<profile::MeasuredBook> book,
                                                    const Configuration& configuration) {
  if (!book) {
    return nullptr;
  }
  const ExecutionModel& stated = *configuration.rates;
  return configuration.corrector
             ? configuration.corrector(*std::move(book), stated, configuration.cluster)
             : std::make_unique<profile::MeasuredModel>(*std::move(book), stated,
                                                        configuration.cluster);
}

}  // namespace

Parts::Parts(std::shared_ptr<const Configuration> with, std::optional<profile::MeasuredBook> book,
             model::JobRecords& records, const std::vector<bool>& up)
    : configuration(std::move(with)),
      measured(CorrectedBy(std::move(book), *configuration)),
      rates(measured ? *measured : *configuration->rates),
      ends(configuration->rules.published),
      ledger(configuration->rules, rates),
      charges(configuration->rules, configuration->cluster, ledger, configuration->overheads,
              measured ? &measured->book() : nullptr),
      grants(configuration->cluster, rates, configuration->bundle, records, ledger, charges),
      views(configuration->cluster, records, ledger),
      instants(configuration->rules),
      choices(configuration->cluster,
              *configuration->rates),  // the same classes of demands for ever
      scheduler({.cluster = configuration->cluster,
                 .nodes_up = up,
                 .jobs = records,
                 .views = views,
                 .data = charges.data(),
                 .choices = choices},
                configuration->bundle,
                configuration->rules.preemption.rule == model::Preemption::Rule::kSound) {
  views.SetWork(scheduler.traits().needs.work_left);
}

void Parts::Relearn(model::JobRecords& records, JobId id) const {
  model::JobRecord& job = records[id];
  if (measured != nullptr) {
    if (const auto spec = measured->Corrected(job.spec); spec != job.spec) {
      records.Respecify(id, spec);
    }
  }
  ledger.Learn(job);
  charges.Price(job);
}

Status Parts::CheckGrant(const model::JobRecords& records, JobId job, const Grant& grant) {
  if (!scheduler.bundle().names_gpus()) {
    return {};
  }
  if (const std::string conflict = grants.Conflict(job, grant); !conflict.empty()) {
    return scheduler.check().Broken(job, conflict);
  }
  if (choices.several()) {
    if (const std::string conflict = choices.Conflict(*records.At(job).spec, grant);
        !conflict.empty()) {
      return scheduler.check().Broken(job, conflict);
    }
  }
  return {};
}

}  // namespace trainyard::engine
