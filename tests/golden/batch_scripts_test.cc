// SPDX-License-Identifier: Apache-2.0
// Scripts of shapes that people use, and how a real Slurm read them: reports/scripts of the
// reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "io/csv_reader.h"
#include "requests/slurm/batch_script.h"
#include "support/reference.h"

namespace trainyard {
namespace {

std::string Variable(const v1::JobRequest& job, std::string_view name) {
  for (const v1::EnvironmentVariable& variable : job.launch().environment()) {
    if (variable.name() == name) {
      return variable.value();
    }
  }
  return "";
}

// What the job is, where the table says it.
void Compare(const io::CsvRow& row, const v1::JobRequest& job) {
  const auto expect = [&row](const char* column, const std::string& is) {
    const std::string_view wanted = row.Text(row.Column(column));
    if (!wanted.empty()) {
      EXPECT_EQ(is, wanted) << row.Text(row.Column("file")) << ": " << column;
    }
  };
  const int nodes = job.nodes().empty() ? 1 : std::stoi(job.nodes());
  const int tasks = job.launch().batch().tasks();
  expect("name", job.name());
  expect("nodes", std::to_string(nodes));
  expect("ntasks", std::to_string(tasks > 0 ? tasks : nodes));
  expect("gpus", std::to_string(job.gpus()));
  expect("gpu_type", job.gpu_types_size() > 0 ? job.gpu_types(0) : "");
  expect("cpus_per_task", Variable(job, "SLURM_CPUS_PER_TASK"));
  expect("mem", job.memory().substr(0, job.memory().find('/')));
  expect("time_seconds", fmt::format("{:.0f}", job.time_s()));
  expect("array", job.array());
}

TEST(BatchScriptsTest, ScriptsAreReadAsSlurmReadsThem) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string folder = Reference() + "/reports/scripts";
  const Result<io::CsvTable> table = io::CsvTable::Open(folder + "/expected.csv");
  ASSERT_TRUE(table.ok()) << table.error().message;
  int scripts = 0;
  const Status status = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    v1::JobRequest job;
    const std::string path = folder + "/" + std::string(row.Text(row.Column("file")));
    const auto script = requests::BatchScript::Read(path, job);
    EXPECT_EQ(script.ok(), row.Text(row.Column("refuse")).empty())
        << path << ": " << (script.ok() ? "" : script.error().message);
    if (script.ok()) {
      Compare(row, job);
    }
    ++scripts;
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.error().message;
  EXPECT_GE(scripts, 10);
}

}  // namespace
}  // namespace trainyard
