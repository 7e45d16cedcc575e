// SPDX-License-Identifier: Apache-2.0
#include "engine/books/namesakes.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace trainyard::engine {
namespace {

using NameKey = std::pair<std::string, std::string>;

// All jobs, one after the other.
std::vector<JobId> NameWalk(const std::map<JobId, NameKey>& jobs, JobId before,
                            const NameKey& key) {
  std::vector<JobId> found;
  for (const auto& [job, of] : jobs) {
    if (job < before && of == key) {
      found.push_back(job);
    }
  }
  return found;
}

TEST(NamesakesTest, FindsWhatAWalkOverAllJobsFinds) {
  std::mt19937 random(7);
  const auto pick = [&random](std::size_t n) { return random() % n; };
  Namesakes namesakes;
  std::map<JobId, NameKey> jobs;
  for (int step = 0; step < 20'000; ++step) {
    const JobId job = JobAt(pick(300));
    const NameKey key("u" + std::to_string(pick(4)), "n" + std::to_string(pick(6)));
    switch (pick(4)) {
      case 0:
        namesakes.Remove(job);
        jobs.erase(job);
        break;
      case 1:
        namesakes.Put(job, key.first, key.second);
        jobs[job] = key;
        break;
      default:
        ASSERT_EQ(namesakes.Before(job, key.first, key.second), NameWalk(jobs, job, key));
    }
  }
}

}  // namespace
}  // namespace trainyard::engine
