// SPDX-License-Identifier: Apache-2.0
// sbatch: submits a script as Slurm reads it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_submit.h"
#include "cli/live/job_selection.h"
#include "cli/slurm/slurm_commands.h"
#include "cli/slurm/slurm_facts.h"
#include "cli/slurm/slurm_words.h"
#include "live/jobs/job_request.h"
#include "requests/slurm/sbatch_options.h"

namespace trainyard::cli {
namespace {

constexpr const char* kSbatch = "sbatch";
constexpr const char* kSbatchUsage =
    "Usage: sbatch [OPTIONS...] [SCRIPT [ARGUMENTS...]]\n"
    "Trainyard by the name of Slurm's sbatch, with its options; docs/from-slurm.md says what\n"
    "becomes of each. See 'trainyard submit'.\n";

// Options that say how sbatch itself answers, and not what the job is.
constexpr std::array<std::string_view, 9> kOfCommand{
    "parsable", "quiet", "wait", "wrap", "help", "usage", "version", "verbose", "test-only"};

std::vector<SlurmOption> KnownOptions() {
  std::vector<SlurmOption> known(requests::SbatchOptions().begin(),
                                 requests::SbatchOptions().end());
  for (SlurmOption& option : known) {
    if (std::find(kOfCommand.begin(), kOfCommand.end(), option.name) != kOfCommand.end()) {
      option.use = SlurmOption::Use::kDone;
    }
  }
  return known;
}

// The script of --wrap or of standard input; else a file.
Status TakeScript(const SlurmWords& words, JobOptionValues& options,
                  std::vector<std::string>& rest) {
  rest = words.rest;
  if (const std::optional<std::string> wrapped = words.Value("wrap")) {
    if (!rest.empty()) {
      return InvalidArgument("Script arguments not permitted with --wrap option");
    }
    options.script = "wrap";
    options.sbatch->text =
        "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + *wrapped + "\n\n";
    return {};
  }
  if (!rest.empty()) {
    options.script = rest.front();
    rest.erase(rest.begin());
    return access(options.script.c_str(), R_OK) == 0
               ? Status()
               : Failed("Unable to open file " + options.script);
  }
  std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  if (text.empty()) {
    return Failed("Batch script is empty!");
  }
  if (!text.starts_with("#!")) {
    return Failed(
        "This does not look like a batch script.  The first\nline must start with #! followed "
        "by the path to an interpreter.\nFor instance: #!/bin/sh");
  }
  options.script = kSbatch;
  options.sbatch->text = std::move(text);
  return {};
}

// Until the job, or all tasks of its array, have ended: the highest exit status of theirs.
Result<int> AwaitEnd(std::uint64_t job, rpc::ClusterClient& client) {
  constexpr std::chrono::milliseconds kPause{500};
  requests::JobSelection selection;
  selection.jobs.push_back(std::to_string(job));
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<v1::JobStatus> jobs, SelectJobs(client, selection, false));
    int status = 0;
    const bool is_over = std::all_of(jobs.begin(), jobs.end(), [&](const v1::JobStatus& one) {
      const int code = one.state() == v1::COMPLETED ? 0 : std::max(1, one.exit_code());
      status = std::max(status, live::HasEnded(one.state()) ? code : 0);
      return live::HasEnded(one.state());
    });
    if (is_over) {
      return status;
    }
    std::this_thread::sleep_for(kPause);
  }
}

// When and where the job would start, as sbatch says it on standard error.
int TellStart(const v1::SubmitReply& tested, bool quiet) {
  if (!tested.has_starts()) {
    fmt::print(stderr,
               "allocation failure: no start of the job is known: it is held, or waits for "
               "what is not known to come\n");
    return 1;
  }
  v1::JobStatus status = tested.status();
  *status.mutable_grants() = tested.places();
  if (!quiet) {
    fmt::print(stderr,
               "sbatch: Job {} to start at {} using {} processors on nodes {} in partition {}\n",
               tested.job(), SlurmStamp(tested.starts()), SlurmCpus(status), SlurmNodes(status),
               status.request().queue().empty() ? kOnlyPartition : status.request().queue());
  }
  return 0;
}

Result<int> SubmitScript(const SlurmWords& words) {
  JobOptionValues options;
  options.test_only = words.Has("test-only");
  options.sbatch.emplace();
  for (const auto& [option, value] : words.options) {
    if (std::find(kOfCommand.begin(), kOfCommand.end(), option->name) == kOfCommand.end()) {
      options.sbatch->options.emplace_back(requests::SbatchOptionNamed(option->name), value);
    }
  }
  std::vector<std::string> arguments;
  RETURN_IF_ERROR(TakeScript(words, options, arguments));
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectAsSlurm());
  ASSIGN_OR_RETURN(const v1::SubmitReply submitted, SendJob(options, arguments, false, *client));
  if (options.test_only) {
    return TellStart(submitted, words.Has("quiet"));
  }
  if (words.Has("parsable")) {
    fmt::print("{}\n", submitted.job());
  } else if (!words.Has("quiet")) {
    fmt::print("Submitted batch job {}\n", submitted.job());
  }
  std::fflush(stdout);
  return words.Has("wait") ? AwaitEnd(submitted.job(), *client) : Result<int>(0);
}

}  // namespace

int Sbatch(const std::vector<std::string>& words) {
  constexpr int kWrongOption = 255;
  const std::vector<SlurmOption> known = KnownOptions();
  const std::optional<SlurmWords> read = ReadSlurmWords(kSbatch, words, known, /*stops=*/true);
  if (!read) {
    return kWrongOption;
  }
  if (read->Has("help") || read->Has("usage")) {
    fmt::print("{}", kSbatchUsage);
    return 0;
  }
  const Result<int> status = SubmitScript(*read);
  if (status.ok()) {
    return status.value();
  }
  for (const std::string_view line : base::Split(status.error().message, "\n")) {
    SlurmError(kSbatch, line);
  }
  return 1;
}

}  // namespace trainyard::cli
