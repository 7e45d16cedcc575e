// SPDX-License-Identifier: Apache-2.0
#include "supervisor/data/rsync.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <vector>

#include "io/descriptor.h"

namespace trainyard::supervisor {
namespace {

constexpr int kNoProgram = 127;

std::vector<std::string> WordsOf(const RsyncRun& run) {
  // Whole minutes of silence are an error; nothing is ever asked of a user.
  std::vector<std::string> words{
      run.program,        "--archive",          "--delete",      "--inplace",
      "--info=progress2", "--no-inc-recursive", "--timeout=120", "--rsh=ssh -o BatchMode=yes"};
  if (run.rate_kbps > 0) {
    constexpr std::int64_t kKibi = 1024;
    const std::int64_t kib = std::max<std::int64_t>(1, run.rate_kbps * 1000 / kKibi);
    words.push_back(fmt::format("--bwlimit={}", kib));
  }
  words.insert(words.end(), {"--", run.from + "/", run.to + "/"});
  return words;
}

// Those of the agent, but for the language of messages.
std::vector<std::string> Environment() {
  std::vector<std::string> variables{"LC_ALL=C"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("LC_ALL=")) {
      variables.emplace_back(*variable);
    }
  }
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Its own process group, so that all of it can be killed. Only what may be called after a fork of
// many threads.
pid_t Spawn(const RsyncRun& run, int output) {
  std::vector<std::string> words = WordsOf(run);
  std::vector<std::string> variables = Environment();
  const std::vector<char*> arguments = Pointers(words);
  const std::vector<char*> environment = Pointers(variables);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) {
    return child;
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) {
    ::signal(signal, SIG_DFL);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(kNoProgram);
  }
  setpgid(0, 0);
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  execve(arguments.front(), arguments.data(), environment.data());
  _exit(kNoProgram);
}

// Lines of progress end with a carriage return.
class Lines {
 public:
  explicit Lines(const std::function<void(double)>& on_progress) : on_progress_(on_progress) {}
  void Add(std::string_view bytes) {
    for (const char byte : bytes) {
      if (byte != '\n' && byte != '\r') {
        line_ += line_.size() < kMost ? std::string(1, byte) : "";
        continue;
      }
      if (const double progress = ProgressIn(line_); progress >= 0) {
        on_progress_(progress);
      } else if (!line_.empty() && rest_.size() < kMost) {
        rest_ += line_ + '\n';
      }
      line_.clear();
    }
  }
  [[nodiscard]] const std::string& rest() const { return rest_; }

 private:
  static constexpr std::size_t kMost = 8192;
  const std::function<void(double)>& on_progress_;
  std::string line_;
  std::string rest_;
};

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

double ProgressIn(std::string_view line) {
  const std::size_t percent = line.find('%');
  if (percent == std::string_view::npos || line.find_first_not_of(" 0123456789,.") != percent) {
    return -1;
  }
  const std::size_t begin = line.rfind(' ', percent) + 1;  // 0: there is none
  constexpr double kHundred = 100;
  int number = 0;
  const auto read = std::from_chars(line.data() + begin, line.data() + percent, number);
  return read.ec == std::errc() && read.ptr == line.data() + percent
             ? std::clamp(number / kHundred, 0.0, 1.0)
             : -1;
}

RsyncEnd EndOfRsync(int status, std::string_view lines) {
  if (status == 0) {
    return {};
  }
  // The first line of rsync itself says what is wrong, the last one that something is. Where ssh
  // fails rsync knows no reason.
  std::string first;
  std::string telling;
  for (std::string_view rest = lines; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    first = first.empty() ? std::string(line) : first;
    const bool tells = line.starts_with("rsync: ") || line.starts_with("ssh: ");
    const bool follows = Has(line, "connection unexpectedly closed");
    telling = telling.empty() && tells && !follows ? std::string(line) : telling;
  }
  std::string error = telling.empty() ? first : telling;
  if (status == kNoProgram) {
    error = "rsync cannot be started, or not on the other machine";
  } else if (error.empty()) {
    error = fmt::format("rsync has ended with status {}", status);
  }
  RsyncEnd failed{.error = std::move(error), .cause = v1::AttemptReport::DATA};
  const bool is_missing = Has(failed.error, "No such file or directory") &&
                          (Has(failed.error, "change_dir") || Has(failed.error, "link_stat"));
  if (is_missing || Has(failed.error, "Not a directory")) {
    failed.cause = v1::AttemptReport::NO_DATA;
  } else if (Has(lines, "No space left on device") || Has(lines, "Disk quota exceeded")) {
    failed.cause = v1::AttemptReport::DISK;
  }
  return failed;
}

RsyncEnd RunRsync(const RsyncRun& run, const std::function<void(double)>& on_progress,
                  const std::function<bool()>& stop) {
  constexpr int kLookMs = 100;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return {.error = "no pipe: " + std::generic_category().message(errno),
            .cause = v1::AttemptReport::SPAWN};
  }
  const io::Descriptor reader(ends[0]);
  io::Descriptor writer(ends[1]);
  const pid_t child = Spawn(run, writer.get());
  writer.Close();
  if (child < 0) {
    return {.error = "no process: " + std::generic_category().message(errno),
            .cause = v1::AttemptReport::SPAWN};
  }
  Lines lines(on_progress);
  bool stopped = false;
  while (true) {
    pollfd awaited{.fd = reader.get(), .events = POLLIN};
    poll(&awaited, 1, kLookMs);
    if (stop() && !stopped) {
      stopped = true;
      kill(-child, SIGKILL);
      kill(child, SIGKILL);  // before it has a group of its own
      break;
    }
    if (awaited.revents == 0) {
      continue;
    }
    std::array<char, 4096> bytes{};
    const ssize_t got = read(reader.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    lines.Add({bytes.data(), static_cast<std::size_t>(got)});
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (stopped) {
    return {.stopped = true};
  }
  lines.Add("\n");
  constexpr int kSignal = 128;
  return EndOfRsync(WIFEXITED(status) ? WEXITSTATUS(status) : kSignal + WTERMSIG(status),
                    lines.rest());
}

}  // namespace trainyard::supervisor
