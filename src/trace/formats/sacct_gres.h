// SPDX-License-Identifier: Apache-2.0
// GPUs in Slurm's lists of resources, as sacct prints them in its columns TRES and GRES.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::trace {

// The GPUs that a list names.
struct SlurmGpus {
  std::int64_t count = 0;
  std::vector<std::string> types;  // sorted, each once; empty: none is named
};

// Of "cpu=4,gres/gpu:a100=2,gres/gpu=2", "gpu:2", "gpu:a100:2(S:0-1),lscratch:3", "gres:gpu:2": an
// entry without a type is the total, those with a type count only without it. Nothing where the
// list names no GPUs. `bad` is set where an entry of GPUs is of no such form.
[[nodiscard]] std::optional<SlurmGpus> SlurmGpusOf(std::string_view list, bool& bad);

// MiB of "cpu=4,mem=200000M"; 0: it states none, or none that can be read.
[[nodiscard]] std::int64_t SlurmMemoryOf(std::string_view list);

// The nodes of "cpu=4,node=2"; 0: it states none, or none that can be read.
[[nodiscard]] int SlurmNodesOf(std::string_view list);

// The CPUs of "cpu=4,gres/gpu=2"; 0: it states none. Nothing: it is no such list.
[[nodiscard]] std::optional<std::int64_t> SlurmCpusOf(std::string_view list);

}  // namespace trainyard::trace
