// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/last_line.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/text.h"

namespace trainyard::supervisor {
namespace {

constexpr std::size_t kMost = 200;
constexpr std::streamoff kTail = std::streamoff{16} * 1024;

// Where torchrun and mpirun begin to tell of the end.
bool IsOfLauncher(std::string_view line) {
  constexpr std::array<std::string_view, 4> kWords{"torch.distributed.elastic",
                                                   "torch/distributed/elastic",
                                                   "Primary job  terminated", "mpirun detected"};
  constexpr std::string_view kRule = "--------------------";
  return line.starts_with(kRule) ||
         std::any_of(kWords.begin(), kWords.end(), [line](std::string_view word) {
           return line.find(word) != std::string_view::npos;
         });
}

// Follows the lines of tracebacks: the one behind their indented lines is the exception.
class Exceptions {
 public:
  void Take(std::string_view line) {
    constexpr std::string_view kTraceback = "Traceback (most recent call last):";
    since_ += base::Trim(line).empty() ? 0 : 1;
    if (const std::size_t at = line.find(kTraceback); at != std::string_view::npos) {
      prefix_ = line.substr(0, at);  // "[rank0]: "
      inside_ = true;
    } else if (inside_ && line.starts_with(prefix_)) {
      const std::string_view rest = line.substr(prefix_.size());
      if (!base::Trim(rest).empty() && rest.front() != ' ') {
        last_ = base::Trim(rest);
        since_ = 0;
        inside_ = false;
      }
    }
  }
  // Empty: there is none, or so much was written since that it has not ended the program.
  [[nodiscard]] std::string_view last() const {
    constexpr int kMostSince =
        10;  // lines: the rest of the message, and what Python says at its end
    return since_ <= kMostSince ? last_ : std::string_view();
  }

 private:
  std::string_view prefix_;
  std::string_view last_;
  int since_ = 0;
  bool inside_ = false;
};

}  // namespace

std::string LastLineOf(std::string_view text) {
  std::string_view last;
  Exceptions exceptions;
  for (const std::string_view raw : base::Split(text, "\n")) {
    const std::string_view line = base::Trim(raw);
    if (IsOfLauncher(line) && !last.empty()) {
      break;
    }
    exceptions.Take(raw);
    last = line.empty() || IsOfLauncher(line) ? last : line;
  }
  last = exceptions.last().empty() ? last : exceptions.last();
  std::string printable(last.substr(0, kMost));
  std::replace_if(
      printable.begin(), printable.end(), [](char byte) { return byte < ' ' || byte > '~'; }, '?');
  return printable;
}

std::string LastLineIn(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {  // to open a pipe would take for ever
    return {};
  }
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = in.tellg();
  if (!in || size <= 0) {
    return {};
  }
  in.seekg(std::max<std::streamoff>(0, size - kTail));
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return LastLineOf(text);
}

}  // namespace trainyard::supervisor
