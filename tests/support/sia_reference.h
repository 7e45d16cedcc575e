// SPDX-License-Identifier: Apache-2.0
// For golden tests of Sia: its measured trainings, and the rules of its published program.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "io/csv_reader.h"
#include "profile/goodput/application.h"
#include "scenario/preset.h"
#include "support/reference.h"
#include "support/scratch_folder.h"

namespace trainyard {

// A folder with the tables of Sia, and beside them what Pollux's data have of more than four nodes
// of type aws, which are the same trainings.
inline const std::string& SiaProfiles() {
  static const ScratchFolder folder;
  static const std::string path = [] {
    const std::filesystem::path from(Reference() + "/data/sia");
    for (const char* table : {"placements.csv.gz", "scalability.csv.gz", "validation.csv.gz"}) {
      std::filesystem::create_symlink(from / table, std::filesystem::path(folder.path()) / table);
    }
    const Result<io::CsvTable> large =
        io::CsvTable::Open(Reference() + "/data/pollux/throughput_over4nodes.csv.gz");
    EXPECT_TRUE(large.ok());
    const std::vector<std::string> columns{"application", "num_nodes", "num_replicas",
                                           "local_bsz",   "step_time", "sync_time"};
    std::string text =
        "application,num_nodes,num_replicas,local_bsz,step_time,sync_time,gpu_type\n";
    EXPECT_TRUE(large.value()
                    .ForEach([&](const io::CsvRow& row) -> Status {
                      for (const std::string& column : columns) {
                        text += std::string(row.Text(row.Column(column))) + ",";
                      }
                      text += "aws\n";
                      return {};
                    })
                    .ok());
    // Text is read whatever the name says.
    std::ofstream(folder.path() + "/throughput_over4nodes.csv.gz") << text;
    return folder.path();
  }();
  return path;
}

inline const profile::Applications& SiaApplications() {
  static const profile::Applications applications = [] {
    Result<profile::Applications> read = profile::Applications::Read(SiaProfiles());
    EXPECT_TRUE(read.ok()) << read.error().message;
    return read.ok() ? std::move(read).value() : profile::Applications();
  }();
  return applications;
}

// Those of preset `sia`.
inline profile::TrainingRules SiaRules() {
  const Result<scenario::ResolvedPreset> preset = scenario::ResolvePreset({.preset = "sia"});
  EXPECT_TRUE(preset.ok()) << preset.error().message;
  return preset.ok() ? preset.value().trainings : profile::TrainingRules();
}

}  // namespace trainyard
