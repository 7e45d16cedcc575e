// SPDX-License-Identifier: Apache-2.0
#include "daemon/notices/outbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
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

// A line of the file: the notice as it is sent, and the engine's time, by which it is known.
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

Outbox::Outbox(Options options, Deliver deliver)
    : options_(std::move(options)), deliver_(std::move(deliver)) {}

Result<std::unique_ptr<Outbox>> Outbox::Open(Options options, Deliver deliver) {
  std::unique_ptr<Outbox> made(new Outbox(std::move(options), std::move(deliver)));
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
  }
}

void Outbox::Log(const std::string& line) const {
  if (options_.log) {
    options_.log(options_.name + ": " + line);
  }
}

// ---------------------------------------------------------------------------------------- the file

// Lines: a notice; {"done":N}, the first N that wait have arrived; {"mark":AT,"keys":[...]}, all up
// to then has been put. A line that was not written to its end is the last one, and passed over.
Status Outbox::Read() {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(options_.file).parent_path(), error);
  is_new_ = !std::filesystem::exists(options_.file, error);
  constexpr mode_t kMine = 0600;
  if (!is_new_) {
    ASSIGN_OR_RETURN(const std::string text, io::ReadBytes(options_.file));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      TakeLine(line);
    }
  }
  file_ =
      io::Descriptor(open(options_.file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMine));
  if (!file_.open()) {
    return Failed(fmt::format("{}: cannot be written: {}", options_.file,
                              std::generic_category().message(errno)));
  }
  Rewrite();
  return {};
}

void Outbox::TakeLine(const std::string& line) {
  const ordered_json json = ordered_json::parse(line, nullptr, false);
  if (!json.is_object()) {
    return;
  }
  try {
    if (json.contains("done")) {
      const auto done = std::min(json["done"].get<std::size_t>(), waiting_.size());
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
    } else if (json.contains("mark")) {
      last_at_ = TimePoint{Duration{json["mark"].get<std::int64_t>()}};
      last_keys_ = json.at("keys").get<std::set<std::string>>();
    } else {
      live::Notice notice = FromJson(json);
      Know(notice);
      std::string text = JsonOf(notice);
      waiting_.push_back({.notice = std::move(notice), .json = std::move(text)});
    }
  } catch (const ordered_json::exception&) {  // of another version, or damaged
    Log(fmt::format("a line of {} cannot be read and is passed over", options_.file));
  }
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

void Outbox::Append(const std::string& line) {
  const std::string bytes = line + "\n";
  ++lines_;
  if (write(file_.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    Log(fmt::format("{} cannot be written: {}; a restart may forget what is on its way",
                    options_.file, std::generic_category().message(errno)));
  }
}

// The file with what is still on its way, and nothing else.
void Outbox::Rewrite() {
  const std::string path = options_.file + ".new";
  constexpr mode_t kMine = 0600;
  io::Descriptor made(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMine));
  std::string text =
      NoticeText({{"mark", last_at_.time_since_epoch().count()}, {"keys", last_keys_}});
  text += "\n";
  for (const Waiting& one : waiting_) {
    text += LineOf(one.notice) + "\n";
  }
  const bool written =
      made.open() &&
      write(made.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      fdatasync(made.get()) == 0 && rename(path.c_str(), options_.file.c_str()) == 0;
  if (written) {
    file_ = io::Descriptor(open(options_.file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    lines_ = waiting_.size() + 1;
  }
}

// ---------------------------------------------------------------------------------------- in, out

void Outbox::Put(const live::Notice& notice) {
  {
    const std::lock_guard lock(mutex_);
    if ((is_new_ && !begun_) || IsKnown(notice)) {
      return;
    }
    Know(notice);
    Append(LineOf(notice));
    waiting_.push_back({.notice = notice, .json = JsonOf(notice)});
    if (waiting_.size() > options_.most) {
      Log(fmt::format("more than {} notices are on their way; that of job {} ({}) is given up",
                      options_.most, waiting_.front().notice.job, waiting_.front().notice.event));
      waiting_.pop_front();
      Append(R"({"done":1})");
    }
  }
  changed_.notify_all();
}

void Outbox::Begin() {
  const std::lock_guard lock(mutex_);
  begun_ = true;
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
    const std::string key = KeyOf(first.notice);
    if (!DeliverFirst(std::move(first))) {
      return;
    }
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty() && KeyOf(waiting_.front().notice) == key) {  // it may have been given up
      waiting_.pop_front();
      Append(R"({"done":1})");
    }
    constexpr std::size_t kMostLines = 1000;
    if (lines_ > kMostLines && lines_ > 4 * waiting_.size()) {
      Rewrite();
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
