// SPDX-License-Identifier: Apache-2.0
#include "live/jobs/updatable_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace trainyard::live {
namespace {

using Request = v1::JobRequest;

std::string GpusOf(const Request& job) {
  return job.max_gpus() > 0 || job.min_gpus() > 0
             ? fmt::format("{} ({}:{})", job.gpus(), job.min_gpus(), job.max_gpus())
             : std::to_string(job.gpus());
}

void SetGpus(const Request& values, Request& job) {
  job.set_gpus(values.gpus());
  job.set_min_gpus(values.min_gpus());
  job.set_max_gpus(values.max_gpus());
}

void SetTime(const Request& values, Request& job) {
  job.clear_time_s();
  if (values.has_time_s()) {
    job.set_time_s(values.time_s());
  }
}

void SetBegin(const Request& values, Request& job) {
  job.clear_begin_s();
  if (values.has_begin_s()) {
    job.set_begin_s(values.begin_s());
  }
}

constexpr std::array kFields{
    UpdatableField{"name", [](const Request& values, Request& job) { job.set_name(values.name()); },
                   [](const Request& job) { return job.name(); }},
    UpdatableField{"queue",
                   [](const Request& values, Request& job) { job.set_queue(values.queue()); },
                   [](const Request& job) { return job.queue(); }},
    UpdatableField{"gpus", SetGpus, GpusOf},
    UpdatableField{"cpus", [](const Request& values, Request& job) { job.set_cpus(values.cpus()); },
                   [](const Request& job) { return job.cpus(); }},
    UpdatableField{"memory",
                   [](const Request& values, Request& job) { job.set_memory(values.memory()); },
                   [](const Request& job) { return job.memory(); }},
    UpdatableField{"nodes",
                   [](const Request& values, Request& job) {
                     job.set_nodes(values.nodes());
                     job.mutable_launch()->clear_tasks();  // of another number
                   },
                   [](const Request& job) { return job.nodes(); }},
    UpdatableField{
        "exclusive",
        [](const Request& values, Request& job) { job.set_exclusive(values.exclusive()); },
        [](const Request& job) { return job.exclusive() ? std::string("true") : std::string(); }},
    UpdatableField{"tmp", [](const Request& values, Request& job) { job.set_tmp(values.tmp()); },
                   [](const Request& job) { return job.tmp(); }},
    UpdatableField{
        "node_list",
        [](const Request& values, Request& job) { job.set_node_list(values.node_list()); },
        [](const Request& job) { return job.node_list(); }},
    UpdatableField{"exclude",
                   [](const Request& values, Request& job) { job.set_exclude(values.exclude()); },
                   [](const Request& job) { return job.exclude(); }},
    UpdatableField{
        "constraint",
        [](const Request& values, Request& job) { job.set_constraint(values.constraint()); },
        [](const Request& job) { return job.constraint(); }},
    UpdatableField{"licenses",
                   [](const Request& values, Request& job) { job.set_licenses(values.licenses()); },
                   [](const Request& job) { return job.licenses(); }},
    UpdatableField{"priority",
                   [](const Request& values, Request& job) {
                     job.mutable_launch()->set_priority(values.launch().priority());
                   },
                   [](const Request& job) { return std::to_string(job.launch().priority()); }},
    UpdatableField{"time", SetTime,
                   [](const Request& job) {
                     return job.has_time_s() ? base::ShortDuration(job.time_s()) : std::string();
                   }},
    UpdatableField{"begin", SetBegin,
                   [](const Request& job) {
                     return job.has_begin_s()
                                ? base::ShortDuration(job.begin_s()) + " after its submission"
                                : std::string();
                   }},
    UpdatableField{
        "dependency",
        [](const Request& values, Request& job) { job.set_dependency(values.dependency()); },
        [](const Request& job) { return job.dependency(); }}};

}  // namespace

std::span<const UpdatableField> UpdatableFields() { return kFields; }

const UpdatableField* UpdatableFieldOf(std::string_view name) {
  const auto* const found =
      std::find_if(kFields.begin(), kFields.end(),
                   [name](const UpdatableField& one) { return one.name == name; });
  return found == kFields.end() ? nullptr : found;
}

std::string UpdatableNames() {
  std::string names;
  for (const UpdatableField& field : kFields) {
    names += (names.empty()                       ? ""
              : field.name == kFields.back().name ? " or "
                                                  : ", ") +
             std::string(field.name);
  }
  return names;
}

}  // namespace trainyard::live
