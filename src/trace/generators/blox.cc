// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/blox.h"

#include <cmath>

#include "base/python_random.h"
#include "base/try.h"
#include "io/csv_reader.h"
#include "trace/csv_format.h"

namespace trainyard::trace {
namespace {

constexpr Duration kRound = std::chrono::seconds(300);
constexpr Duration kBetweenBursts = std::chrono::hours(4);
// Lengths in seconds, both ends included, and model classes, whose draw is thrown away.
constexpr std::uint32_t kLeastLong = 36'000;
constexpr std::uint32_t kMostLong = 86'400;
constexpr std::uint32_t kLeastShort = 600;
constexpr std::uint32_t kMostShort = 3'600;
constexpr std::uint32_t kModels = 9;
constexpr std::int64_t kMaxPoolGpus = 1'000'000;

class Stream {
 public:
  Stream(const BloxOptions& options, const BloxPool* pool)
      : options_(options), pool_(pool), random_(options.seed) {
    Draw();
  }

  Result<std::vector<JobSpec>> Jobs() {
    for (TimePoint now{}; !Done(now); now += kRound) {
      while (pending_.submit <= now && !Full()) {
        HandOver(pending_, now);
        Draw();
      }
      if (options_.bursts && now.time_since_epoch() % kBetweenBursts == Duration{0}) {
        Burst(now);
      }
      if (Seconds(now) > model::kMostTraceSeconds) {
        return InvalidArgument(
            "the jobs take more than 9000000000 s to arrive; expected fewer jobs "
            "or more per hour");
      }
    }
    return std::move(jobs_);
  }

 private:
  [[nodiscard]] bool Full() const { return !options_.until && jobs_.size() >= options_.jobs; }
  [[nodiscard]] bool Done(TimePoint now) const {
    return options_.until ? now > *options_.until : Full();
  }

  std::uint32_t Between(std::uint32_t least, std::uint32_t most) {
    return least + random_.Below(most - least + 1);
  }

  // The next job of the base stream.
  void Draw() {
    const double hours = -std::log(1 - random_.Random()) / options_.jobs_per_hour;
    last_ += FromSeconds(std::ceil(hours * 3600));
    static_cast<void>(random_.Below(kModels));
    pending_ = {.submit = last_};
    if (pool_ == nullptr) {
      Last(pending_, Between(kLeastLong, kMostLong));
    }
  }

  static void Last(JobSpec& job, double seconds) {
    job.iterations = seconds;
    job.duration = FromSeconds(seconds);
  }

  void HandOver(JobSpec job, TimePoint now) {
    if (pool_ != nullptr) {
      const BloxPool::Row& row = pool_->rows[jobs_.size() % pool_->rows.size()];
      Last(job, row.iterations);
      job.gpus = row.gpus;
    }
    job.name = std::to_string(jobs_.size());
    job.handover = now;
    jobs_.push_back(std::move(job));
  }

  // Short copies of the job that is still to come, before its submit time.
  void Burst(TimePoint now) {
    const auto copies = static_cast<int>(4 * options_.jobs_per_hour);
    for (int i = 0; i < copies && !Full(); ++i) {
      JobSpec copy = pending_;
      Last(copy, Between(kLeastShort, kMostShort));
      HandOver(std::move(copy), now);
    }
  }

  const BloxOptions& options_;
  const BloxPool* pool_;
  base::PythonRandom random_;
  TimePoint last_{};
  JobSpec pending_;
  std::vector<JobSpec> jobs_;
};

}  // namespace

Result<std::vector<JobSpec>> GenerateBloxTrace(const BloxOptions& options, const BloxPool* pool) {
  return Stream(options, pool).Jobs();
}

Result<BloxPool> ReadBloxPool(const std::string& path) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  const int iterations = table.Column({"total_iterations"});
  const int gpus = table.Column({"num_gpus"});
  if (iterations < 0 || gpus < 0) {
    return table.BadHeader(
        "no column total_iterations or num_gpus; expected both in a list of jobs to draw from");
  }
  BloxPool pool;
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    ASSIGN_OR_RETURN(const double seconds, row.Positive(iterations));
    const Result<std::int64_t> count = row.Integer(gpus, 1);
    if (!count.ok() || count.value() > kMaxPoolGpus) {
      return row.Bad(gpus, "a number of GPUs from 1 to 1000000");
    }
    pool.rows.push_back({seconds, static_cast<int>(count.value())});
    return {};
  }));
  if (pool.rows.empty()) {
    return BadInput(path + ": no jobs to draw from; expected a row for each after the header");
  }
  return pool;
}

}  // namespace trainyard::trace
