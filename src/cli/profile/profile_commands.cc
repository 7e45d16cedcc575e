// SPDX-License-Identifier: Apache-2.0
// trainyard profile: sensitivity, throughput, overhead, stages, loader.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/profile/profile_output.h"
#include "cli/progress_bar.h"
#include "cli/running.h"
#include "io/temporary_folder.h"
#include "profiler/command_trace.h"
#include "profiler/loader_runs.h"
#include "profiler/measurement.h"
#include "profiler/overhead.h"
#include "profiler/process_runner.h"
#include "profiler/run_book.h"
#include "profiler/sensitivity.h"
#include "profiler/stages.h"
#include "profiler/subject.h"
#include "profiler/throughput.h"

namespace trainyard::cli {
namespace {

struct ProfileCommand {
  profiler::Subject subject;
  profiler::Repetition repetition;
  double noise_percent = 10;
  double limit_s = 600;
  std::string out;
  bool json = false;
  std::vector<std::int64_t> batches;
  std::vector<int> gpus{1};
  std::vector<int> workers;
  int workers_per_gpu = 0;
  int nodes = 1;  // Synergy's profiler
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  std::string gpu_type;
  std::string commands;
  profiler::SensitivityOptions sensitivity;
  profiler::MemoryModel memory;
  loader::ModelSize size;
};

// Counts the runs that went well while they are made.
class WatchedRunner final : public profiler::TrialRunner {
 public:
  WatchedRunner(profiler::TrialRunner& runner, std::size_t expected)
      : runner_(runner), expected_(expected), bar_("profile", "runs", 1) {}

  profiler::TrialResult Run(const profiler::Trial& trial) override {
    bar_.Show(counted_, std::max(expected_, counted_ + 1), " " + trial.name);
    profiler::TrialResult result = runner_.Run(trial);
    if (result.ok()) {
      ++counted_;
    }
    bar_.Show(counted_, std::max(expected_, counted_), " " + trial.name);
    return result;
  }

 private:
  profiler::TrialRunner& runner_;
  const std::size_t expected_;
  std::size_t counted_ = 0;
  ProgressBar bar_;
};

void SayWhatIsThere(const ProfileCommand& command, std::size_t runs,
                    const profiler::Measurer::Plan& plan) {
  if (runs == 0) {
    return;
  }
  const std::size_t others = runs - std::min(runs, plan.used);
  fmt::print(stderr, "profile: {} of {} runs of this command are there{} ({}/runs.jsonl)\n",
             plan.there, plan.runs,
             others == 0 ? "" : fmt::format("; {} others in the file do not count", others),
             command.out);
}

// The measurements of a verb: `take` makes them with a measurer, `use` what comes of them. The
// measurements are taken twice: at first without any run, to see which there are.
template <typename Take, typename Use>
Status WithMeasurer(const ProfileCommand& command, const Take& take, const Use& use) {
  std::error_code error;
  std::filesystem::create_directories(command.out, error);
  if (error) {
    return Failed(
        fmt::format("--out {}: the folder cannot be made: {}", command.out, error.message()));
  }
  const io::TemporaryFolder scratch("trainyard-profile");  // for what the runs leave behind
  if (scratch.path().empty()) {
    return Failed("no folder can be made for temporary files; expected room below TMPDIR");
  }
  ASSIGN_OR_RETURN(profiler::RunBook book, profiler::RunBook::Open(command.out + "/runs.jsonl"));
  profiler::Measurer planned(book, command.repetition);
  if (const auto plan = take(planned); !plan.ok()) {
    return plan.error();
  }
  SayWhatIsThere(command, book.size(), planned.plan());
  StopOnSignals();
  const std::unique_ptr<profiler::TrialRunner> runner =
      profiler::MakeProcessRunner({.scratch = scratch.path(),
                                   .program = ThisProgram(),
                                   .stop_wanted = StopWanted,
                                   .master_address = command.master_address,
                                   .master_port = command.master_port});
  WatchedRunner watched(*runner, planned.plan().runs - planned.plan().there);
  profiler::Measurer measurer(watched, book, command.repetition, [](const std::string& remark) {
    fmt::print(stderr, "profile: {}\n", remark);
  });
  ASSIGN_OR_RETURN(const auto taken, take(measurer));
  return use(taken, measurer);
}

// ------------------------------------------------------------------------------------------- verbs

Status ThroughputCommand(const ProfileCommand& command) {
  const profiler::ThroughputGrid grid{.batches = command.batches,
                                      .gpus = command.gpus,
                                      .loader_workers_per_gpu = command.workers_per_gpu};
  return WithMeasurer(
      command,
      [&](profiler::Measurer& measurer) {
        return MeasureThroughput(command.subject, grid, measurer);
      },
      [&](const std::vector<profiler::ThroughputCell>& cells,
          const profiler::Measurer& measurer) -> Status {
        RETURN_IF_ERROR(
            profiler::WriteThroughput(command.out, command.subject.model, command.gpu_type, cells));
        RETURN_IF_ERROR(profiler::WriteProfilingTime(command.out, command.subject.model,
                                                     measurer.seconds_of_all()));
        return ShowThroughput({command.out, command.subject.model, command.json}, cells);
      });
}

Status Stages(const ProfileCommand& command) {
  return WithMeasurer(
      command,
      [&](profiler::Measurer& measurer) {
        return MeasureStages(command.subject, command.gpus, measurer);
      },
      [&](const std::vector<profiler::StageRow>& rows, const profiler::Measurer&) -> Status {
        RETURN_IF_ERROR(profiler::WriteStages(command.out, command.subject, rows));
        return ShowStages({command.out, command.subject.model, command.json}, rows);
      });
}

// A mean that is less than its confidence interval says nothing, and goes into the preset.
void WarnOfWidth(const std::vector<profiler::ChangeTimes>& changes) {
  for (const profiler::ChangeTimes& change : changes) {
    if (change.seconds.half_width > change.seconds.mean) {
      fmt::print(stderr,
                 "profile: {}: {:.2g} +- {:.2g} s says next to nothing; expected more --runs, or a "
                 "machine on which nothing else runs\n",
                 change.from == 0 ? fmt::format("start on {}", change.to)
                                  : fmt::format("{} to {}", change.from, change.to),
                 change.seconds.mean, change.seconds.half_width);
    }
  }
}

Status Overhead(const ProfileCommand& command) {
  profiler::Changes changes = profiler::ChangesAmong(command.gpus);
  if (!command.commands.empty()) {
    ASSIGN_OR_RETURN(changes, profiler::ReadCommandTrace(command.commands));
  }
  return WithMeasurer(
      command,
      [&](profiler::Measurer& measurer) {
        return MeasureOverhead(command.subject, changes, measurer);
      },
      [&](const std::vector<profiler::ChangeTimes>& times, const profiler::Measurer&) -> Status {
        WarnOfWidth(times);
        RETURN_IF_ERROR(profiler::WriteOverhead(command.out, command.subject.model, times));
        return ShowOverhead({command.out, command.subject.model, command.json}, times);
      });
}

Status Sensitivity(const ProfileCommand& command) {
  if (command.memory.data_gb > 0 &&
      (command.memory.samples <= 0 || command.memory.disk_mbps <= 0)) {
    return InvalidArgument(
        "--data-gb needs the samples of an epoch and the bandwidth of the storage; expected "
        "--samples N and --str-bw MB/S with it");
  }
  const auto most = static_cast<std::size_t>(command.sensitivity.most_cpus);
  return WithMeasurer(
      command,
      [&](profiler::Measurer& measurer) {
        return MeasureCpus(command.subject, command.sensitivity, measurer);
      },
      [&](const profiler::CpuCurve& curve, const profiler::Measurer& measurer) -> Status {
        RETURN_IF_ERROR(profiler::WriteSensitivity(command.out, command.subject,
                                                   command.sensitivity, curve, command.memory));
        const double per_point =
            measurer.runs_made() == 0
                ? 0
                : measurer.seconds() / static_cast<double>(measurer.runs_made());
        const double runs_saved = static_cast<double>(
            (most - curve.measured.size()) * static_cast<std::size_t>(command.repetition.runs));
        return ShowSensitivity({command.out, command.subject.model, command.json}, curve,
                               {.runs_saved = runs_saved,
                                .minutes_saved = runs_saved * per_point / 60,
                                .gpus = command.sensitivity.gpus});
      });
}

Status Loader(const ProfileCommand& command) {
  const profiler::LoaderGrid grid{
      .batches = command.batches, .workers = command.workers, .devices = command.gpus.front()};
  return WithMeasurer(
      command,
      [&](profiler::Measurer& measurer) {
        return MeasureLoader(command.subject, grid, command.size, measurer);
      },
      [&](const std::vector<loader::MeasuredRun>& runs, const profiler::Measurer&) -> Status {
        if (std::none_of(runs.begin(), runs.end(),
                         [](const loader::MeasuredRun& run) { return run.loading_seconds > 0; })) {
          fmt::print(stderr,
                     "profile: no run told of waiting for data, so the fitted model means nothing; "
                     "expected a script that loads by the DataLoader of trainyard.train, and as "
                     "few --workers as make it wait\n");
        }
        ASSIGN_OR_RETURN(const loader::LoaderFit fit,
                         profiler::WriteLoader(command.out, runs, loader::FitOptions()));
        return ShowLoader({command.out, command.subject.model, command.json}, runs, fit);
      });
}

// ----------------------------------------------------------------------------------------- options

// Checks what the options say together, and completes it.
Status Complete(ProfileCommand& command, const std::vector<std::string>& rest) {
  if (rest.empty()) {
    return InvalidArgument(
        "no command; expected the training script after the options: -- PROGRAM [ARGUMENT...]");
  }
  if (command.nodes > 1) {
    return InvalidArgument(fmt::format(
        "--nnodes {}: a profile is measured on one machine; expected 1, or a job on that many "
        "nodes of a live cluster",
        command.nodes));
  }
  command.subject.command = rest;
  command.subject.folder = std::filesystem::current_path().string();
  command.subject.limit = FromSeconds(command.limit_s);
  command.subject.batch = command.batches.front();
  command.repetition.noise = command.noise_percent / 100;
  command.repetition.spare = 2 * command.repetition.runs;
  std::sort(command.gpus.begin(), command.gpus.end());
  command.gpus.erase(std::unique(command.gpus.begin(), command.gpus.end()), command.gpus.end());
  command.size.name = command.subject.model;
  profiler::SensitivityOptions& sensitivity = command.sensitivity;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (sensitivity.most_cpus == 0) {
    sensitivity.most_cpus = cores;
  }
  sensitivity.gpus = command.gpus.front();
  sensitivity.bind_cores = sensitivity.most_cpus <= cores;
  return {};
}

void AddShared(CLI::App& verb, ProfileCommand& command) {
  verb.add_option("--model", command.subject.model, "its name in traces and profiles")->required();
  verb.add_option("-b,--batch,--batch-size", command.batches,
                  "samples of an iteration of the whole job")
      ->delimiter(',')
      ->transform(WholeNumber())
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000'000}))
      ->required();
  verb.add_option("--container-image,--docker-img", command.subject.container.image,
                  "container image in which the script runs, by podman");
  verb.add_option("--container-mounts,--container-mnt", command.subject.container.mounts,
                  "SOURCE:TARGET[:FLAG+FLAG],... for it")
      ->delimiter(',');
  verb.add_option("--out", command.out, "folder for the profile, its runs and plots")->required();
  verb.add_option("--iterations,--max-iterations", command.subject.iterations,
                  "that are measured, after the warm-up")
      ->check(CLI::Range(1.0, 1e9))
      ->capture_default_str();
  verb.add_option("--warmup", command.subject.warmup, "iterations before them, that do not count")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  verb.add_option("--runs", command.repetition.runs, "of each measurement")
      ->transform(WholeNumber())
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  verb.add_option("--noise", command.noise_percent,
                  "percent by which a run may differ from the median of the others; one that does "
                  "is repeated")
      ->check(Positive())
      ->capture_default_str();
  verb.add_option("--limit", command.limit_s, "time after which a run counts as hanging")
      ->transform(Span())
      ->check(Positive())
      ->capture_default_str();
  verb.add_flag("--json", command.json, "print JSON");
}

void AddGpuCounts(CLI::App& verb, ProfileCommand& command, bool several) {
  auto* option =
      verb.add_option("--gpus,--num-gpus", command.gpus, "processes, one for each GPU; one machine")
          ->delimiter(',')
          ->transform(WholeNumber())
          ->check(CLI::Range(1, 64))
          ->capture_default_str();
  if (!several) {
    option->expected(1);
  }
}

void AddSensitivity(CLI::App& verb, ProfileCommand& command) {
  AddGpuCounts(verb, command, false);
  verb.add_option("--nnodes", command.nodes, "machines: 1")->check(CLI::Range(1, 4096));
  verb.add_option("--master_addr,--master-addr", command.master_address,
                  "address at which the processes meet")
      ->capture_default_str();
  verb.add_option("--master_port,--master-port", command.master_port,
                  "port there; default: another one for each run")
      ->check(CLI::Range(1, 65535));
  verb.add_option("--cpu", command.sensitivity.most_cpus,
                  "the most CPUs to try: as loader workers, and, where the machine has as many, as "
                  "cores that the script is bound to; default: those of the machine")
      ->transform(WholeNumber())
      ->check(CLI::Range(1, 4096));
  verb.add_option("--tolerance", command.sensitivity.tolerance,
                  "of what is interpolated, as a part of it")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  verb.add_option("--cpus-per-gpu", command.sensitivity.node.cpus_per_gpu, "of the cluster's nodes")
      ->check(Positive())
      ->capture_default_str();
  verb.add_option("--memory", command.sensitivity.node.memory_gb_per_gpu,
                  "GB for each GPU of the nodes")
      ->check(Positive())
      ->capture_default_str();
  verb.add_option("--data-gb", command.memory.data_gb,
                  "size of the data set; without it memory does not matter")
      ->check(Positive());
  verb.add_option("--samples", command.memory.samples, "of an epoch")->check(Positive());
  verb.add_option("--str-bw", command.memory.disk_mbps, "bandwidth of the storage, MB/s")
      ->envname("STR_BW")
      ->check(Positive());
  verb.add_option("--mem-thr", command.memory.cache_gbps,
                  "bandwidth of memory, GB/s; without it what is cached costs nothing")
      ->envname("MEM_THR")
      ->check(Positive());
}

struct Verb {
  const char* name;
  const char* what;
  Status (*run)(const ProfileCommand&);
};

CLI::App* AddVerb(CLI::App& profile, Command& chosen, const Verb& verb,
                  const std::shared_ptr<ProfileCommand>& command) {
  CLI::App* app = profile.add_subcommand(verb.name, verb.what);
  app->footer("The training script follows the options: -- PROGRAM [ARGUMENT...]");
  AddShared(*app, *command);
  app->callback([command, run = verb.run, &chosen] {
    chosen.run = [command, run, &chosen]() -> Status {
      RETURN_IF_ERROR(Complete(*command, chosen.rest));
      return run(*command);
    };
  });
  return app;
}

}  // namespace

void AddProfile(CLI::App& app, Command& chosen) {
  CLI::App* profile = app.add_subcommand("profile", "measure a training script");
  profile->require_subcommand(1);

  auto command = std::make_shared<ProfileCommand>();
  CLI::App* verb = AddVerb(
      *profile, chosen,
      {"throughput", "iterations per second by batch size and GPUs", ThroughputCommand}, command);
  AddGpuCounts(*verb, *command, true);
  verb->add_option("--gpu-type", command->gpu_type, "on which it is measured");
  verb->add_option("--workers", command->workers_per_gpu, "loader workers of each process")
      ->transform(WholeNumber())
      ->check(CLI::Range(0, 4096));

  command = std::make_shared<ProfileCommand>();
  verb = AddVerb(*profile, chosen,
                 {"sensitivity", "how fast it trains with fewer CPUs and memory", Sensitivity},
                 command);
  AddSensitivity(*verb, *command);

  command = std::make_shared<ProfileCommand>();
  verb = AddVerb(*profile, chosen, {"overhead", "what starts, stops and resizes cost", Overhead},
                 command);
  AddGpuCounts(*verb, *command, true);
  verb->add_option(
      "--commands", command->commands,
      "command trace of ElasticFlow's artifact: the changes of size in it, in place of "
      "--gpus");

  command = std::make_shared<ProfileCommand>();
  verb = AddVerb(*profile, chosen,
                 {"stages", "times of loading, GPU and network in an iteration", Stages}, command);
  AddGpuCounts(*verb, *command, true);

  command = std::make_shared<ProfileCommand>();
  verb = AddVerb(*profile, chosen,
                 {"loader", "what loader workers deliver: torchloader's model", Loader}, command);
  AddGpuCounts(*verb, *command, false);
  verb->add_option("--workers", command->workers, "loader workers of all processes together")
      ->delimiter(',')
      ->transform(WholeNumber())
      ->check(CLI::Range(1, 4096))
      ->required();
  verb->add_option("--params", command->size.params, "weights of the model")
      ->check(Positive())
      ->required();
  verb->add_option("--flops", command->size.flops, "multiply-accumulates of one sample")
      ->check(Positive())
      ->required();
}

}  // namespace trainyard::cli
