// SPDX-License-Identifier: Apache-2.0
#include "supervisor/attempt_course.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "supervisor/processes.h"

namespace trainyard::supervisor {
namespace {

using std::chrono::milliseconds;

bool SameMetrics(const v1::AttemptReport& a, const v1::AttemptReport& b) {
  return std::equal(a.metrics().begin(), a.metrics().end(), b.metrics().begin(), b.metrics().end(),
                    [](const v1::Metric& x, const v1::Metric& y) {
                      return x.name() == y.name() && x.value() == y.value();
                    });
}

// What the agent wants to hear soon, though the state is the same.
bool HasProgressed(const v1::AttemptReport& report, const v1::AttemptReport& told) {
  return report.iterations() != told.iterations() ||
         report.checkpointed_iterations() != told.checkpointed_iterations() ||
         report.finished() != told.finished() || report.note() != told.note() ||
         report.use().cpu_micros() != told.use().cpu_micros() ||
         report.use().peak_memory() != told.use().peak_memory() || !SameMetrics(report, told);
}

}  // namespace

void AttemptCourse::NoteFailure(int exit_code, double unix_s) {
  if (exit_code != 0 && exit_code_ == 0) {
    exit_code_ = exit_code;
    failed_at_ = unix_s;
  }
}

void AttemptCourse::NoteNotStarted(const StartFailure& failure, double unix_s) {
  NoteFailure(failure.exit_code, unix_s);
  cause_ = failure.cause;
  message_ = failure.message;
  killing_ = true;
}

void AttemptCourse::NoteEnd(int exit_code, double unix_s,
                            const std::function<std::string()>& text) {
  if (exit_code != 0 && exit_code_ == 0 && !notice_end_) {
    message_ = text();
  }
  NoteFailure(exit_code, unix_s);
}

void AttemptCourse::NoteMemoryKill(double unix_s, const cgroup::MemoryUse& memory) {
  constexpr int kKilled = 137;
  NoteFailure(kKilled, unix_s);
  constexpr double kGib = 1 << 30;
  const std::string limit =
      memory.limit == 0
          ? std::string()
          : fmt::format(": {:.3g} GiB of {:.3g} GiB",
                        static_cast<double>(std::max(memory.most, memory.limit)) / kGib,
                        static_cast<double>(memory.limit) / kGib);
  message_ = fmt::format("{}{} on {}; submit it with more --memory", kOutOfMemory, limit,
                         start_.node().empty() ? "its node" : start_.node());
  killing_ = true;
}

std::optional<AttemptCourse::Notice> AttemptCourse::AskToLeave(std::int64_t grace_ms,
                                                               Clock::time_point now) {
  asked_to_leave_ = true;
  return GiveNotice(grace_ms, now);
}

std::optional<AttemptCourse::Notice> AttemptCourse::GiveNotice(std::int64_t grace_ms,
                                                               Clock::time_point now) {
  constexpr std::int64_t kLongest = std::int64_t{1000} * 60 * 60 * 24 * 365;
  const auto end = now + milliseconds(std::clamp<std::int64_t>(grace_ms, 0, kLongest));
  if (killing_ || (notice_end_ && *notice_end_ <= end)) {
    return std::nullopt;
  }
  const bool is_first = !notice_end_;
  notice_given_ = is_first ? now : notice_given_;
  notice_end_ = end;
  return Notice{.end = end, .is_first = is_first, .has_time = grace_ms > 0};
}

AttemptCourse::Todo AttemptCourse::Decide(bool workers_run, bool childless,
                                          const Training& training, Clock::time_point now) {
  constexpr Clock::duration kLongest = milliseconds(500);
  Todo todo;
  if (has_failed() && workers_run && !notice_end_) {
    todo.notice = GiveNotice(start_.grace(), now);  // the others wait for it in vain
  }
  const bool overdue = notice_end_ && now >= *notice_end_;
  if (overdue && !killing_ && asked_to_leave_ && workers_run) {
    NoteIgnoredNotice(training, now);
  }
  killing_ = killing_ || !workers_run || overdue;
  if (killing_ && !childless && now >= next_kill_) {
    todo.kill = true;
    next_kill_ = now + kill_pause_;
    kill_pause_ = std::min(kill_pause_ * 2, kLongest);
  }
  return todo;
}

void AttemptCourse::NoteIgnoredNotice(const Training& training, Clock::time_point now) {
  const double given = std::chrono::duration<double>(now - notice_given_).count();
  const double saved = training.checkpointed_iterations;
  if (given >= 1 && !training.finished) {  // less is no time to do anything in
    ignored_notice_ = fmt::format(
        "did not leave within {:.0f} s of its notice and was killed: {}; a job that heeds SIGTERM "
        "or 'stop' saves a checkpoint and leaves",
        given,
        saved > 0 ? fmt::format("what came after its checkpoint of iteration {} is lost", saved)
                  : std::string("no checkpoint is known of"));
  }
}

v1::AttemptReport AttemptCourse::Report(v1::AttemptReport::State state, const Training& training,
                                        const StageDesk::Seconds& stages) const {
  v1::AttemptReport report;
  *report.mutable_id() = start_.id();
  report.set_state(state);
  report.set_exit_code(exit_code_);
  report.set_failed_at(failed_at_);
  report.set_cause(cause_);
  report.set_finished(training.finished);
  report.set_iterations(training.iterations);
  report.set_checkpointed_iterations(training.checkpointed_iterations);
  report.set_message(message_);
  *report.mutable_gpus() = start_.gpus();
  report.set_note(ignored_notice_.empty() ? training.note : ignored_notice_);
  if (use_.cpu_micros() > 0 || use_.peak_memory() > 0) {
    *report.mutable_use() = use_;
  }
  *report.mutable_steps() = steps_;
  if (training.progress) {
    const auto seconds = [this](Clock::time_point at) {
      return std::chrono::duration<double>(at - start_time_).count();
    };
    report.set_first_progress_s(seconds(*training.first_progress));
    report.set_progress_s(seconds(*training.progress));
  }
  for (int stage = v1::Stage_MIN; stage < v1::Stage_ARRAYSIZE; ++stage) {
    if (const double mean = stages.at(static_cast<std::size_t>(stage)); mean > 0) {
      v1::StageSeconds& seconds = *report.add_stages();
      seconds.set_stage(static_cast<v1::Stage>(stage));
      seconds.set_seconds(mean);
    }
  }
  for (const auto& [name, value] : training.metrics) {
    v1::Metric& metric = *report.add_metrics();
    metric.set_name(name);
    metric.set_value(value);
  }
  return report;
}

std::optional<AttemptCourse::Change> AttemptCourse::TakeChange(const Training& training,
                                                               const StageDesk::Seconds& stages,
                                                               Clock::time_point now) {
  if (!started_) {
    return std::nullopt;  // the last report says it all
  }
  const bool stopping = notice_end_ || killing_;
  v1::AttemptReport report =
      Report(stopping ? v1::AttemptReport::STOPPING : v1::AttemptReport::RUNNING, training, stages);
  const bool progressed = steps_untold_ || HasProgressed(report, told_);
  const bool due = now >= next_progress_;
  untold_ = progressed && !due;
  if (report.state() == told_.state() && (!progressed || !due)) {
    return std::nullopt;
  }
  if (progressed) {
    constexpr std::int64_t kASecond = 1000;
    next_progress_ =
        now + milliseconds(start_.report_every() > 0 ? start_.report_every() : kASecond);
  }
  untold_ = false;
  steps_untold_ = false;
  const bool is_saved = report.checkpointed_iterations() != told_.checkpointed_iterations();
  told_ = report;
  return Change{.report = std::move(report), .is_saved = is_saved};
}

v1::AttemptReport AttemptCourse::LastReport(const Training& training,
                                            const StageDesk::Seconds& stages) const {
  v1::AttemptReport report = Report(v1::AttemptReport::EXITED, training, stages);
  report.set_finished(report.finished() || (!notice_end_ && exit_code_ == 0));
  report.set_lost(asked_to_leave_ && !report.finished());
  return report;
}

AttemptCourse::Clock::time_point AttemptCourse::next_due() const {
  const Clock::time_point due = killing_      ? next_kill_
                                : notice_end_ ? *notice_end_
                                              : Clock::time_point::max();
  return untold_ ? std::min(due, next_progress_) : due;
}

}  // namespace trainyard::supervisor
