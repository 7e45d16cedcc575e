// SPDX-License-Identifier: Apache-2.0
// What --profiles says of models, whichever kind it is of, and what becomes of a job by it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loader/loader_profiles.h"
#include "profile/goodput/application.h"
#include "profile/sensitivity_table.h"
#include "profile/stage_table.h"
#include "profile/throughput_table.h"
#include "scenario/assembly.h"
#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::scenario {

// At most one is set.
struct KnownModels {
  std::optional<profile::ThroughputTable> throughput;
  std::optional<profile::SensitivityTable> sensitivity;
  std::optional<loader::LoaderProfiles> loader;
  std::optional<profile::StageTable> stages;
  // For simulations only: live jobs measure themselves.
  std::optional<profile::Applications> applications;

  // An empty path: none. Of throughput profiles only what the GPU types of the cluster need.
  // Errors: those of the readers.
  [[nodiscard]] static Result<KnownModels> Read(const std::string& path, const Cluster& cluster);
  // Jobs of a trace to their profiles, where there are any, with the work that follows: iterations
  // of durations, or the other way round. `has_measured`: loader rates are measured, too.
  void Bind(const Cluster& cluster, bool has_measured, std::vector<JobSpec>& jobs) const;
  // Of all values: two that differ have other texts.
  [[nodiscard]] std::string Digest() const;
};

// The complaint about a grouping beside profiles that know no stages. REQUIRES: parts.grouping.
[[nodiscard]] Status NeedsStages(const Assembly& parts);

// Why the job, with its rates known, cannot run on the nodes of its partition with the GPU types
// that it accepts, or not with these parts. REQUIRES: parts.rates are set; `classes` of that
// cluster.
[[nodiscard]] Status CheckHasNodes(const Assembly& parts, const Cluster& cluster,
                                   const model::NodeClasses& classes, const JobSpec& job);

// What a live controller asks of a job before it takes it: binds it to its profile, or says why its
// policy could not do with it. Of throughput profiles the live world knows by itself.
[[nodiscard]] Status BindLiveJob(const KnownModels& models, const Assembly& parts,
                                 const Cluster& cluster, const model::NodeClasses& classes,
                                 JobSpec& job);

// An error where a placement only counts, so that no job could be started.
[[nodiscard]] Status CheckNamesGpus(const Assembly& parts);

// The pace of live jobs, job by job: by its profile if it is bound to one, otherwise its declared
// duration. Errors: the parts cannot do with these profiles, or cannot work live at all. `models`
// and `cluster` must outlive the parts.
[[nodiscard]] Status MakeLiveRates(const KnownModels& models, const Cluster& cluster,
                                   Assembly& parts);

// Jobs are bound to these models. Models and parts must outlive the configuration.
void TakeLiveJobs(const KnownModels& models, const Assembly& parts,
                  engine::Configuration& configuration);

// The configuration of a live cluster, which binds jobs to these models. REQUIRES: MakeLiveRates
// has made the rates of the parts. Models and parts must outlive it, or become its owner.
[[nodiscard]] std::shared_ptr<engine::Configuration> LiveConfiguration(const KnownModels& models,
                                                                       const Assembly& parts,
                                                                       const Cluster& cluster);

}  // namespace trainyard::scenario
