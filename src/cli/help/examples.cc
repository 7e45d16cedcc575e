// SPDX-License-Identifier: Apache-2.0
#include "cli/help/examples.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>

namespace trainyard::cli {
namespace {

struct Example {
  std::string_view command;  // without "trainyard"
  std::string_view text;     // likewise
};

constexpr std::array kExamples{
    Example{"simulate", "simulate --cluster 16x8 --policy srtf --out run jobs.csv"},
    Example{"compare", "compare --cluster 16x8 --policy fifo --policy srtf --out runs jobs.csv"},
    Example{"sweep", "sweep --parallel 8 --out results experiments/example.toml"},
    Example{"reproduce", "reproduce elasticflow/fig8a"},
    Example{"report", "report --out report.html runs/fifo runs/srtf"},
    Example{"trace", "trace stats jobs.csv"},
    Example{"trace validate", "trace validate --profiles profiles jobs.csv"},
    Example{"trace stats", "trace stats --json jobs.csv"},
    Example{"trace convert", "trace convert jobs.csv jobs.swf"},
    Example{"trace generate", "trace generate --jobs 1000 --cluster-gpus 128 --out jobs.csv"},
    Example{"trace generate-profiles", "trace generate-profiles --out profiles.csv"},
    Example{"trace generate-failures",
            "trace generate-failures --cluster 16x8 --days 30 --out failing.toml"},
    Example{"loader", "loader predict --help"},
    Example{"loader fit", "loader fit --help"},
    Example{"loader predict", "loader predict --help"},
    Example{"loader allocate", "loader allocate --help"},
    Example{"profile", "profile throughput --help"},
    Example{"profile sensitivity",
            "profile sensitivity --model bert --batch-size 32 --out profiles -- python3 train.py"},
    Example{"profile throughput",
            "profile throughput --model bert --batch-size 32 --out profiles --gpus 1,2,4 -- "
            "python3 train.py"},
    Example{"profile overhead",
            "profile overhead --model bert --batch-size 32 --out profiles -- python3 train.py"},
    Example{"profile stages",
            "profile stages --model bert --batch-size 32 --out profiles -- python3 train.py"},
    Example{"profile loader",
            "profile loader --model bert --batch-size 32 --out profiles -- python3 train.py"},
    Example{"controller", "controller --cluster cluster.toml --policy srtf --state state"},
    Example{"agent", "agent --controller head:7077 --node n0 --gpus 8 --state state"},
    Example{"up", "up --nodes 2 --gpus 4"},
    Example{"replay-live", "replay-live --policy srtf --cluster 2x4 --fast-forward jobs.csv"},
    Example{"fidelity", "fidelity runs/simulated runs/live"},
    Example{"policies", "policies srtf"},
    Example{"placements", "placements consolidated"},
    Example{"admissions", "admissions deadline"},
    Example{"groupings", "groupings"},
    Example{"tunings", "tunings loader"},
    Example{"presets", "presets elasticflow"},
    Example{"submit", "submit --gpus 2 --time 4h --name bert -- python3 train.py --epochs 3"},
    Example{"run", "run --gpus 1 -- nvidia-smi"},
    Example{"wait", "wait 12 13 && echo 'both have completed'"},
    Example{"status", "status --user ann --state running,waiting"},
    Example{"logs", "logs --follow --tail 20 12"},
    Example{"attach", "attach 12 -- nvidia-smi"},
    Example{"signal", "signal --signal USR1 12"},
    Example{"cancel", "cancel --user ann --state waiting"},
    Example{"hold", "hold 12"},
    Example{"release", "release 12"},
    Example{"requeue", "requeue --hold 12"},
    Example{"update", "update --time 8h --begin '' 12"},
    Example{"resize", "resize --gpus 4 12"},
    Example{"nodes", "nodes --json"},
    Example{"drain", "drain n3 --deadline 2h --reason 'a new disk'"},
    Example{"undrain", "undrain n3"},
    Example{"audit", "audit --user ann --from 2026-11-28T09:00 --last 100"},
    Example{"usage", "usage --by user,day --from 2026-05-01 --to 2026-05-31"},
    Example{"controller pause", "controller pause --reason 'a new disk'"},
    Example{"controller resume", "controller resume"},
    Example{"controller close", "controller close --reason 'we move on Friday'"},
    Example{"controller open", "controller open"},
    Example{"config", "config show"},
    Example{"config show", "config show > cluster.toml"},
    Example{"config diff", "config diff cluster.toml"},
    Example{"config apply", "config apply --check-index 3 cluster.toml"},
    Example{"config history", "config history"},
    Example{"config rollback", "config rollback 2"},
    Example{"profiles", "profiles show"},
    Example{"profiles show", "profiles show --model bert"},
    Example{"profiles export", "profiles export measured"},
    Example{"profiles diff", "profiles diff"},
    Example{"login", "login --controller head:7077 --token-file secret"},
    Example{"user", "user list"},
    Example{"user add", "user add --role operator --output secret ann"},
    Example{"user remove", "user remove ann"},
    Example{"user list", "user list"},
    Example{"node", "node token --help"},
    Example{"node add", "node add n3 --gpus 8 --gpu-type A100"},
    Example{"node set", "node set n3 --gpus 4"},
    Example{"node remove", "node remove n3 --rehearse"},
    Example{"node token", "node token --output join-n3 n3"},
    Example{"node revoke", "node revoke n3"},
    Example{"certs", "certs"},
    Example{"help", "help trace convert"},
    Example{"completion", "completion bash >~/.local/share/bash-completion/completions/trainyard"},
    Example{"manual", "manual man/man1 && man man/man1/trainyard.1"},
};

void AddBelow(CLI::App& app, const std::string& path) {  // NOLINT(misc-no-recursion)
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string name = path.empty() ? command->get_name() : path + " " + command->get_name();
    for (const Example& example : kExamples) {
      if (example.command == name) {
        const std::string before = command->get_footer();
        command->footer(fmt::format("Example: trainyard {}\n{}{}", example.text,
                                    before.empty() ? "" : "\n", before));
      }
    }
    AddBelow(*command, name);
  }
}

}  // namespace

void AddExamples(CLI::App& app) { AddBelow(app, ""); }

}  // namespace trainyard::cli
