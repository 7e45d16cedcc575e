// SPDX-License-Identifier: Apache-2.0
#include "daemon/notices/outbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/try.h"
#include "io/file.h"
#include "io/json.h"

namespace trainyard::daemon {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::string KeyOf(const live::Notice& notice) {
  return fmt::format("{} {}", notice.job, notice.event);
}

ordered_json ToJson(const live::Notice& notice) {
  return {{"job", notice.job},      {"name", notice.name}, {"user", notice.user},
          {"event", notice.event},  {"time", notice.time}, {"state", notice.state},
          {"reason", notice.reason}};
}

std::string NoticeText(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// As it is kept: the notice as it is sent, and the engine's time, by which it is known.
std::string LineOf(const live::Notice& notice) {
  ordered_json json = ToJson(notice);
  json["at"] = notice.at.time_since_epoch().count();
  return NoticeText(json);
}

live::Notice FromJson(const ordered_json& json) {
  return {.job = json.at("job").get<std::uint64_t>(),
          .name = json.at("name").get<std::string>(),
          .user = json.at("user").get<std::string>(),
          .event = json.at("event").get<std::string>(),
          .at = TimePoint{Duration{json.at("at").get<std::int64_t>()}},
          .time = json.at("time").get<double>(),
          .state = json.at("state").get<std::string>(),
          .reason = json.at("reason").get<std::string>()};
}

}  // namespace

std::string JsonOf(const live::Notice& notice) { return NoticeText(ToJson(notice)); }

Outbox::Outbox(Options options, store::NoticeTable& table, Deliver deliver)
    : options_(std::move(options)), table_(table), deliver_(std::move(deliver)) {}

Result<std::unique_ptr<Outbox>> Outbox::Open(Options options, store::NoticeTable& table,
                                             Deliver deliver) {
  std::unique_ptr<Outbox> made(new Outbox(std::move(options), table, std::move(deliver)));
  RETURN_IF_ERROR(made->Read());
  made->thread_ = std::thread([&outbox = *made] { outbox.Run(); });
  return made;
}

Outbox::~Outbox() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
    Save();
  }
}

void Outbox::Log(const std::string& line) const {
  if (options_.log) {
    options_.log(options_.name + ": " + line);
  }
}

// --------------------------------------------------------------------------------------- the table

// Row 0 is the mark: {"mark":AT,"keys":[...]}, all up to then has been put. It is there from the
// first Begin on. The others wait.
Status Outbox::Read() {
  ASSIGN_OR_RETURN(const std::vector<store::StoredNotice> rows, table_.Of(options_.name));
  for (const store::StoredNotice& row : rows) {
    TakeLine(row.text, row.number);
    last_number_ = row.number;
  }
  is_new_ = rows.empty();
  return options_.former_file.empty() ? Status() : TakeOver();
}

// Lines of the former file: as rows, and {"done":N}, the first N that wait have arrived. One that
// was not written to its end is the last, and passed over.
Status Outbox::TakeOver() {
  std::error_code error;
  if (!std::filesystem::exists(options_.former_file, error)) {
    return {};
  }
  if (is_new_) {
    ASSIGN_OR_RETURN(const std::string text, io::ReadBytes(options_.former_file));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      TakeLine(line, ++last_number_);
    }
    for (const Waiting& one : waiting_) {
      Keep(one);
    }
    is_new_ = false;
    marked_ = false;
    Save();
    if (!save_error_.empty()) {
      return Failed(save_error_);
    }
  }
  std::filesystem::remove(options_.former_file, error);
  return {};
}

void Outbox::TakeLine(const std::string& line, std::uint64_t number) {
  const ordered_json json = ordered_json::parse(line, nullptr, false);
  try {
    if (!json.is_object()) {
      return;
    }
    if (json.contains("done")) {
      const auto done = std::min(json["done"].get<std::size_t>(), waiting_.size());
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
    } else if (json.contains("mark")) {
      last_at_ = TimePoint{Duration{json["mark"].get<std::int64_t>()}};
      last_keys_ = json.at("keys").get<std::set<std::string>>();
    } else {
      live::Notice notice = FromJson(json);
      if (notice.at >= last_at_) {
        Know(notice);
      }
      std::string text = JsonOf(notice);
      waiting_.push_back({.number = number, .notice = std::move(notice), .json = std::move(text)});
    }
  } catch (const ordered_json::exception&) {  // of another version, or damaged
    Log("a notice that was kept cannot be read and is passed over");
  }
}

void Outbox::Keep(const Waiting& waiting) {
  table_.Put(options_.name, {.number = waiting.number, .text = LineOf(waiting.notice)});
}

void Outbox::Save() {
  {
    const std::lock_guard lock(mutex_);
    for (const std::uint64_t number : std::exchange(arrived_, {})) {
      table_.Drop(options_.name, number);
    }
    if (!std::exchange(marked_, true)) {
      table_.Put(options_.name, {.number = 0,
                                 .text = NoticeText({{"mark", last_at_.time_since_epoch().count()},
                                                     {"keys", last_keys_}})});
    }
  }
  const Status saved = table_.Save();
  const std::string error = saved.ok() ? std::string() : saved.error().message;
  if (error != save_error_ && !error.empty()) {
    Log(error + "; what has arrived may be told again after a restart");
  }
  save_error_ = error;
}

bool Outbox::IsKnown(const live::Notice& notice) const {
  return notice.at < last_at_ || (notice.at == last_at_ && last_keys_.contains(KeyOf(notice)));
}

void Outbox::Know(const live::Notice& notice) {
  if (notice.at > last_at_) {
    last_at_ = notice.at;
    last_keys_.clear();
  }
  last_keys_.insert(KeyOf(notice));
}

// ---------------------------------------------------------------------------------------- in, out

void Outbox::Put(const live::Notice& notice) {
  {
    const std::lock_guard lock(mutex_);
    if ((is_new_ && !begun_) || IsKnown(notice)) {
      return;
    }
    Know(notice);
    marked_ = false;
    waiting_.push_back({.number = ++last_number_, .notice = notice, .json = JsonOf(notice)});
    Keep(waiting_.back());
    if (waiting_.size() > options_.most) {
      Log(fmt::format("more than {} notices are on their way; that of job {} ({}) is given up",
                      options_.most, waiting_.front().notice.job, waiting_.front().notice.event));
      arrived_.push_back(waiting_.front().number);
      waiting_.pop_front();
    }
  }
  changed_.notify_all();
}

void Outbox::Begin() {
  {
    const std::lock_guard lock(mutex_);
    begun_ = true;
    marked_ = marked_ && !is_new_;
  }
  Save();
}

void Outbox::Run() {
  while (true) {
    Waiting first;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (stopping_) {
        return;
      }
      first = waiting_.front();
    }
    const std::uint64_t number = first.number;
    if (!DeliverFirst(std::move(first))) {
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      if (!waiting_.empty() && waiting_.front().number == number) {  // it may have been given up
        waiting_.pop_front();
        arrived_.push_back(number);
      }
    }
    if (options_.arrived) {
      options_.arrived();
    }
  }
}

// Until it has arrived, or has been tried for long enough. False: this object is to go.
bool Outbox::DeliverFirst(Waiting first) {
  const Clock::time_point give_up = Clock::now() + options_.patience;
  std::chrono::milliseconds pause = options_.first_pause;
  const std::string what =
      fmt::format("the notice of job {} ({})", first.notice.job, first.notice.event);
  for (bool told = false;; told = true) {
    const Status status = deliver_(first.notice, first.json);
    if (status.ok()) {
      if (told) {
        Log(what + " has arrived now");
      }
      return true;
    }
    if (Clock::now() >= give_up) {
      Log(fmt::format("{} is given up: {}", what, status.error().message));
      return true;
    }
    if (!told) {
      Log(fmt::format("{} has not arrived: {}; trying again", what, status.error().message));
    }
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, pause, [this] { return stopping_; })) {
      return false;
    }
    pause = std::min(pause * 2, options_.longest_pause);
  }
}

}  // namespace trainyard::daemon
