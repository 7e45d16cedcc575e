// SPDX-License-Identifier: Apache-2.0
// trainyard reproduce: the figures and tables of the papers, beside what was published.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/progress_bar.h"
#include "cli/running.h"
#include "experiments/reproduce/measured_figure.h"
#include "experiments/reproduce/reproduce.h"
#include "io/json.h"

namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;

struct ReproduceCommand {
  std::vector<std::string> ids;
  std::string out = "trainyard-figures";
  std::string reference;
  std::vector<std::string> measured;  // folders of profiles
  int parallel = 1;
  bool json = false;
};

// "all", a figure, or a system, whose figures are meant.
std::vector<std::string> IdsOf(const std::vector<std::string>& words, bool has_measured) {
  std::vector<std::string> ids;
  std::vector<std::string> known = experiments::FigureIds();
  if (has_measured) {
    known.emplace_back(experiments::kMeasuredFigure);
  }
  for (const std::string& word : words) {
    const auto belongs = [&word](const std::string& id) {
      return word == "all" || id.starts_with(word + "/");
    };
    const bool several = std::any_of(known.begin(), known.end(), belongs);
    if (!several) {
      ids.push_back(word);  // perhaps unknown, which is said when it is read
      continue;
    }
    std::copy_if(known.begin(), known.end(), std::back_inserter(ids), belongs);
  }
  std::vector<std::string> once;
  for (const std::string& id : ids) {
    if (std::find(once.begin(), once.end(), id) == once.end()) {
      once.push_back(id);
    }
  }
  return once;
}

Result<std::vector<experiments::FigureSpec>> ReadFigures(const std::vector<std::string>& ids,
                                                         const std::string& reference) {
  std::vector<experiments::FigureSpec> specs;
  for (const std::string& id : ids) {
    ASSIGN_OR_RETURN(experiments::FigureSpec spec, experiments::ReadFigure(id, reference));
    specs.push_back(std::move(spec));
  }
  return specs;
}

Status ListFigures(const ReproduceCommand& command) {
  ASSIGN_OR_RETURN(const std::vector<experiments::FigureSpec> specs,
                   ReadFigures(experiments::FigureIds(), command.reference));
  const auto missing = experiments::MissingInputs(specs, command.reference);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const experiments::FigureSpec& spec = specs[i];
    const auto paper = static_cast<std::size_t>(
        std::count_if(spec.published.begin(), spec.published.end(),
                      [](const experiments::PublishedValue& value) { return !value.artifact; }));
    if (command.json) {
      json.push_back({{"id", spec.id},
                      {"title", spec.experiment.title},
                      {"cells", spec.experiment.cells.size()},
                      {"paper_values", paper},
                      {"artifact_values", spec.published.size() - paper},
                      {"missing", missing[i]}});
      continue;
    }
    fmt::print("{:<28} {}\n{:<28} {} runs, {} values of the paper, {} of its artifact; inputs {}\n",
               spec.id, spec.experiment.title, "", spec.experiment.cells.size(), paper,
               spec.published.size() - paper, missing[i].empty() ? "at hand" : "partly missing:");
    for (const std::string& what : missing[i]) {
      fmt::print("{:<28}   {}\n", "", what);
    }
  }
  if (command.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print(
        "{:<28} ElasticFlow, figure 12: measured, not simulated: --measured FOLDER of\n"
        "{:<28} `trainyard profile throughput` and `trainyard profile overhead`\n",
        experiments::kMeasuredFigure, "");
  }
  return {};
}

Status ConcludeFigures(const std::vector<experiments::FigureOutcome>& figures,
                       const ReproduceCommand& command) {
  fmt::print(stderr, "page: {}\n", (fs::path(command.out) / "index.html").string());
  std::size_t ok = 0;
  std::size_t failed = 0;
  std::string texts;
  for (const experiments::FigureOutcome& figure : figures) {
    ok += figure.ok;
    failed += figure.failed.size();
    for (const std::string& text : figure.failed) {
      texts += fmt::format("\n  {}: {}", figure.spec.id, text);
    }
  }
  if (failed > 0) {
    return Failed(fmt::format("{} runs failed:{}", failed, texts));
  }
  if (ok == 0 && figures.size() == 1 && figures[0].spec.id == experiments::kMeasuredFigure) {
    return Failed(fmt::format("nothing was reproduced: {}", figures[0].missing.front()));
  }
  return ok > 0 ? Status()
                : Failed(fmt::format("nothing was run: no input is below {}; name the folder of "
                                     "inputs with --reference, or see `trainyard reproduce list` "
                                     "for where they can be had",
                                     command.reference));
}

// Those that are simulated.
Result<std::vector<experiments::FigureOutcome>> RunSimulated(const std::vector<std::string>& ids,
                                                             const ReproduceCommand& command,
                                                             const Command& chosen) {
  ASSIGN_OR_RETURN(std::vector<experiments::FigureSpec> specs, ReadFigures(ids, command.reference));
  if (specs.empty()) {
    return std::vector<experiments::FigureOutcome>();
  }
  ASSIGN_OR_RETURN(const std::string program, ProgramDigest(chosen.plugins));
  StopOnSignals();
  ProgressBar progress("reproduce", "runs done", 1);
  return experiments::RunFigures(std::move(specs),
                                 {.reference = command.reference,
                                  .program = program,
                                  .folder = command.out,
                                  .generate = GenerateTraceFile,
                                  .parallel = command.parallel,
                                  .on_open =
                                      [&](const experiments::BookCounts& counts) {
                                        if (counts.reused > 0) {
                                          fmt::print(stderr, "{} of {} runs are in {} already\n",
                                                     counts.reused, counts.cells, command.out);
                                        }
                                      },
                                  .on_done =
                                      [&](const experiments::BookCounts& counts) {
                                        progress.Show(counts.done(), counts.cells);
                                      },
                                  .stop = StopWanted});
}

Status Reproduce(const ReproduceCommand& command, const Command& chosen) {
  std::vector<std::string> ids = IdsOf(command.ids, !command.measured.empty());
  const bool measured = std::erase(ids, experiments::kMeasuredFigure) > 0;
  if (!command.measured.empty() && !measured) {
    return InvalidArgument(
        fmt::format("--measured is for {}; expected that figure, its system or "
                    "all",
                    experiments::kMeasuredFigure));
  }
  ASSIGN_OR_RETURN(std::vector<experiments::FigureOutcome> figures,
                   RunSimulated(ids, command, chosen));
  if (measured) {
    ASSIGN_OR_RETURN(experiments::FigureOutcome outcome,
                     experiments::MeasuredFigure(command.measured));
    figures.push_back(std::move(outcome));
  }
  ASSIGN_OR_RETURN(const bool drawn,
                   experiments::WriteFigures(figures, command.out, chosen.command_line));
  if (!drawn) {
    fmt::print(stderr,
               "there is no gnuplot here: the data of each panel and a script for it are "
               "in {}, without images\n",
               command.out);
  }
  if (command.json) {
    fmt::print("{}\n", experiments::FiguresJson(figures));
  } else {
    for (const experiments::FigureOutcome& figure : figures) {
      fmt::print("{}\n\n", experiments::FigureTable(figure));
    }
    fmt::print("{}\n", experiments::SummaryTable(figures));
  }
  std::fflush(stdout);
  return ConcludeFigures(figures, command);
}

}  // namespace

void AddReproduce(CLI::App& app, Command& chosen) {
  auto command = std::make_shared<ReproduceCommand>();
  command->reference = DefaultReference();
  command->parallel = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  CLI::App* const reproduce =
      app.add_subcommand("reproduce", "run the published figures again, beside their values");
  reproduce
      ->add_option("ID", command->ids,
                   "figures such as elasticflow/fig8a, systems such as muri, or all; list: what "
                   "there is and whether its inputs are at hand")
      ->required();
  reproduce->add_option("--out", command->out, "folder for images, tables and index.html")
      ->capture_default_str();
  reproduce->add_option("--parallel", command->parallel, "runs at a time")
      ->transform(WholeNumber())
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  reproduce
      ->add_option("--reference", command->reference,
                   "folder with the published inputs (default: TRAINYARD_REFERENCE, ../shared)")
      ->capture_default_str();
  reproduce->add_option("--measured", command->measured,
                        "folder that `profile throughput` or `profile overhead` has written, for "
                        "elasticflow/fig12; several times for several");
  reproduce->add_flag("--json", command->json, "print JSON instead of tables");
  reproduce->callback([command, &chosen] {
    chosen.run = [command, &chosen] {
      command->reference = fs::absolute(command->reference).lexically_normal().string();
      const bool list = command->ids == std::vector<std::string>{"list"};
      return list ? ListFigures(*command) : Reproduce(*command, chosen);
    };
  });
}

}  // namespace trainyard::cli
