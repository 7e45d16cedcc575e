// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "io/json.h"

namespace trainyard::daemon {
namespace {

using nlohmann::ordered_json;

// Of one answer; a longer one goes on from where it has ended.
constexpr std::size_t kMostEntries = 1000;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

std::string LineOf(const v1::AuditEntry& entry) {
  ordered_json json{
      {"entry", entry.entry()}, {"time", entry.time()}, {"by", entry.by()}, {"what", entry.what()}};
  const auto add = [&json](const char* key, const auto& values) {
    if (!values.empty()) {
      json[key] = std::vector<std::string>(values.begin(), values.end());
    }
  };
  add("jobs", entry.jobs());
  add("nodes", entry.nodes());
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// None: the line is not of this program.
std::optional<v1::AuditEntry> EntryOf(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) {
    return std::nullopt;
  }
  v1::AuditEntry entry;
  const auto text = [&json](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto number = json.find("entry");
  if (number == json.end() || !number->is_number_unsigned()) {
    return std::nullopt;
  }
  entry.set_entry(number->get<std::uint64_t>());
  entry.set_time(text("time"));
  entry.set_by(text("by"));
  entry.set_what(text("what"));
  const auto take = [&json](const char* key, const auto& add) {
    const auto found = json.find(key);
    for (const auto& one : found == json.end() ? nlohmann::json::array() : *found) {
      if (one.is_string()) {
        add(one.get<std::string>());
      }
    }
  };
  take("jobs", [&entry](std::string job) { entry.add_jobs(std::move(job)); });
  take("nodes", [&entry](std::string node) { entry.add_nodes(std::move(node)); });
  return entry;
}

// Whether a number, or a span of numbers, "5-10004", has the job.
bool Has(const std::string& span, std::uint64_t job) {
  const std::size_t dash = std::min(span.find('-'), span.size());
  const auto first = base::ToInteger<std::uint64_t>(std::string_view(span).substr(0, dash));
  const auto last = dash == span.size()
                        ? first
                        : base::ToInteger<std::uint64_t>(std::string_view(span).substr(dash + 1));
  return first && last && *first <= job && job <= *last;
}

bool IsAskedFor(const v1::AuditEntry& entry, const v1::AuditRequest& request) {
  const auto& jobs = entry.jobs();
  const auto& nodes = entry.nodes();
  return (request.user().empty() || entry.by() == request.user() ||
          entry.by().starts_with(request.user() + " (")) &&
         (request.job() == 0 ||
          std::any_of(jobs.begin(), jobs.end(),
                      [&](const std::string& span) { return Has(span, request.job()); })) &&
         (request.node().empty() ||
          std::find(nodes.begin(), nodes.end(), request.node()) != nodes.end()) &&
         entry.time() >= request.from() &&
         (request.to().empty() || entry.time().substr(0, request.to().size()) <= request.to());
}

int OpenFile(const std::string& path) {
  constexpr mode_t kMine = 0600;
  return open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kMine);
}

Error FileError(const std::string& path, int number) {
  return Failed(path + ": " + std::strerror(number));
}

}  // namespace

Result<std::unique_ptr<AuditFile>> AuditFile::Open(const std::string& path) {
  io::Descriptor file(OpenFile(path));
  if (!file.open()) {
    return Failed(path + ": " + std::strerror(errno) +
                  "; expected a file that the controller's user may write: correct its owner and "
                  "mode, or move it away: it is written again from the journal");
  }
  std::unique_ptr<AuditFile> opened(new AuditFile(path, std::move(file)));
  RETURN_IF_ERROR(opened->FindLast());
  return opened;
}

// Only the end of the file is looked at: one entry has few lines.
Status AuditFile::FindLast() {
  constexpr off_t kTail = off_t{1} << 20;
  struct stat known {};
  if (fstat(file_.get(), &known) != 0) {
    return FileError(path_, errno);
  }
  const off_t begin = std::max<off_t>(0, known.st_size - kTail);
  std::string tail(static_cast<std::size_t>(known.st_size - begin), '\0');
  if (pread(file_.get(), tail.data(), tail.size(), begin) != static_cast<ssize_t>(tail.size())) {
    return FileError(path_, errno);
  }
  const std::size_t end = tail.rfind('\n') + 1;  // 0: there is none
  if (end < tail.size()) {
    tail.resize(end);
    if (ftruncate(file_.get(), begin + static_cast<off_t>(end)) != 0) {
      return FileError(path_, errno);
    }
  }
  for (const std::string_view line : base::Split(tail, "\n")) {
    if (const std::optional<v1::AuditEntry> entry = EntryOf(std::string(line))) {
      last_ = {entry->entry(), entry->entry() == last_.first ? last_.second + 1 : 1};
    }
  }
  return {};
}

void AuditFile::Begin(std::uint64_t entry) { next_ = {entry, 0}; }

void AuditFile::Put(const v1::AuditEntry& entry) {
  next_ = {entry.entry(), entry.entry() == next_.first ? next_.second + 1 : 1};
  if (next_ <= last_) {
    return;
  }
  last_ = next_;
  ++added_;
  pending_ += LineOf(entry);
  (void)Write();
}

// Somebody has moved or removed the file: the next lines are in a new one.
void AuditFile::Reopen() {
  struct stat here {};
  struct stat named {};
  const bool is_there = fstat(file_.get(), &here) == 0 && stat(path_.c_str(), &named) == 0 &&
                        here.st_ino == named.st_ino && here.st_dev == named.st_dev;
  if (io::Descriptor file(is_there ? -1 : OpenFile(path_)); file.open()) {
    file_ = std::move(file);
  }
}

// A line that is written in part is taken back.
Status AuditFile::Write() {
  if (pending_.empty()) {
    return {};
  }
  is_saved_ = false;
  Reopen();
  const off_t before = lseek(file_.get(), 0, SEEK_END);
  const ssize_t count = write(file_.get(), pending_.data(), pending_.size());
  if (count == static_cast<ssize_t>(pending_.size())) {
    pending_.clear();
    return {};
  }
  const int number = count < 0 ? errno : ENOSPC;
  if (count > 0 && ftruncate(file_.get(), before) != 0) {
    return FileError(path_, errno);
  }
  return FileError(path_, number);
}

Status AuditFile::Save() {
  RETURN_IF_ERROR(Write());
  if (!is_saved_ && fdatasync(file_.get()) != 0) {
    return FileError(path_, errno);
  }
  is_saved_ = true;
  return {};
}

void AuditFile::End(std::uint64_t entry) {
  if (last_.first > entry) {
    last_ = {entry, 0};
  }
}

Result<v1::AuditReply> AuditFile::Read(const v1::AuditRequest& request) const {
  std::ifstream in(path_, std::ios::binary);
  if (!in) {
    return FileError(path_, errno);
  }
  in.seekg(static_cast<std::streamoff>(request.after()));
  v1::AuditReply reply;
  std::uint64_t at = request.after();
  std::size_t bytes = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    at += line.size() + 1;
    std::optional<v1::AuditEntry> entry = EntryOf(line);
    if (!entry || !IsAskedFor(*entry, request)) {
      continue;
    }
    bytes += line.size();
    *reply.add_entries() = *std::move(entry);
    if (static_cast<std::size_t>(reply.entries_size()) == kMostEntries || bytes >= kMostBytes) {
      reply.set_next(at);
      break;
    }
  }
  return reply;
}

}  // namespace trainyard::daemon
