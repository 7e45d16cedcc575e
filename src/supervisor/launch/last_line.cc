// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/last_line.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

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

}  // namespace

std::string LastLineOf(std::string_view text) {
  std::string_view last;
  for (const std::string_view raw : base::Split(text, "\n")) {
    const std::string_view line = base::Trim(raw);
    if (IsOfLauncher(line) && !last.empty()) {
      break;
    }
    last = line.empty() || IsOfLauncher(line) ? last : line;
  }
  std::string printable(last.substr(0, kMost));
  std::replace_if(
      printable.begin(), printable.end(), [](char byte) { return byte < ' ' || byte > '~'; }, '?');
  return printable;
}

std::string LastLineIn(const std::string& path) {
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
