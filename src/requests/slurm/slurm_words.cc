// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/slurm_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "live/jobs/job_request.h"
#include "requests/slurm/sbatch_options.h"

namespace trainyard::requests {
namespace {

struct Twin {
  std::string_view slurm;
  std::string_view here;
};

constexpr std::array kCommands{Twin{"sbatch", "submit"},      Twin{"srun", "run"},
                               Twin{"salloc", "run --pty"},   Twin{"squeue", "status"},
                               Twin{"sacct", "status --all"}, Twin{"scancel", "cancel"},
                               Twin{"sinfo", "nodes"},        Twin{"sattach", "logs --follow"},
                               Twin{"sstat", "status JOB"},   Twin{"sprio", "status"},
                               Twin{"sshare", "status"},      Twin{"sreport", "status --all"},
                               Twin{"sdiag", "nodes"},        Twin{"sacctmgr", "user"}};

constexpr std::array kScontrol{Twin{"hold", "hold JOB"},
                               Twin{"uhold", "hold JOB"},
                               Twin{"release", "release JOB"},
                               Twin{"requeue", "requeue JOB"},
                               Twin{"requeuehold", "requeue --hold JOB"},
                               Twin{"suspend", "requeue --hold JOB"},
                               Twin{"resume", "release JOB"},
                               Twin{"update", "update ... JOB"},
                               Twin{"top", "update --priority N JOB"},
                               Twin{"ping", "nodes"},
                               Twin{"create", "node add NODE --gpus N"},
                               Twin{"delete", "node remove NODE"},
                               Twin{"reconfigure", "config apply FILE"}};

// What is to be typed in place of options of sbatch.
struct OptionTwin {
  std::string_view names;  // with a blank between them; "partition/p" is --partition and -p
  std::string_view here;
};

constexpr std::array kSelections{
    OptionTwin{"user/u me", "it is --user here"},
    OptionTwin{"account/A",
               "'trainyard usage --by account' sums what was submitted with --account"},
    OptionTwin{"states/t state", "it is --state here"},
    OptionTwin{"partition/p", "it is --queue here"},
    OptionTwin{"name/n jobname", "it is --name here"},
    OptionTwin{"jobs/j job", "the numbers of jobs need no option here"},
    OptionTwin{"nodelist/w", "'trainyard nodes' shows which jobs a node has"},
    OptionTwin{"iterate/i", "'trainyard status --watch' shows the list again and again"},
    OptionTwin{"start", "'trainyard status JOB' says why a job waits"},
    OptionTwin{"array/r", "it is 'trainyard status --tasks' here"},
    OptionTwin{"format/o Format/O", "'trainyard status --json' has all fields"},
    OptionTwin{"signal/s", "it is 'trainyard signal --signal NAME JOB' here"},
    OptionTwin{"clusters/M", "it is --controller here"}};

constexpr std::array kStates{Twin{"pending pd requeued rq suspended s", "waiting"},
                             Twin{"configuring cf", "starting"},
                             Twin{"r", "running"},
                             Twin{"completing cg stopped", "stopping"},
                             Twin{"cd", "completed"},
                             Twin{"ca canceled", "cancelled"},
                             Twin{"f timeout to node_fail nf out_of_memory oom boot_fail bf "
                                  "deadline dl",
                                  "failed"}};

// The twin of `word`, "--name", "--name=VALUE" or "-l".
std::string InsteadOf(std::span<const OptionTwin> twins, std::string_view word) {
  const bool is_long = word.starts_with("--");
  if (!is_long && (word.size() < 2 || word.front() != '-')) {
    return {};
  }
  const std::string_view given = is_long ? word.substr(2, word.find('=') - 2) : word.substr(1, 1);
  for (const OptionTwin& twin : twins) {
    for (const std::string_view option : base::Split(twin.names, " ")) {
      const std::size_t slash = std::min(option.find('/'), option.size());
      const std::string_view letter = option.substr(std::min(slash + 1, option.size()));
      if (given == (is_long ? option.substr(0, slash) : letter)) {
        return std::string(twin.here);
      }
    }
  }
  return {};
}

bool IsSlurms(std::string_view word) {
  constexpr std::array<std::string_view, 3> kOthers{"scontrol", "sbcast", "sgather"};
  return std::any_of(kCommands.begin(), kCommands.end(),
                     [word](const Twin& twin) { return twin.slurm == word; }) ||
         std::find(kOthers.begin(), kOthers.end(), word) != kOthers.end();
}

// -------------------------------------------------------------------------------- calls in scripts

// Words behind which a command follows.
bool IsBeforeCommand(std::string_view word) {
  constexpr std::array<std::string_view, 16> kWords{
      "then", "do",    "else", "elif", "if",    "while", "!",       "exec",
      "time", "nohup", "eval", "env",  "until", "sudo",  "command", "timeout"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

bool IsAssignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// The commands of one line: words at the places where a shell looks for one, and those of `bash -c
// "srun ..."`.
class LineScan {
 public:
  template <typename Found>
  void Scan(std::string_view line, Found found) {
    constexpr std::string_view kStarts = ";&|(){}`";
    constexpr std::string_view kEnds = " \t\r;&|(){}`\"'$";
    bool command = !continued_;
    std::string_view before;
    std::string_view rest = line;
    while (!rest.empty()) {
      if (rest.starts_with("${")) {
        rest.remove_prefix(std::min(rest.find('}'), rest.size() - 1) + 1);
      } else if (kEnds.find(rest.front()) != std::string_view::npos) {
        const bool quote = rest.front() == '"' || rest.front() == '\'';
        command = command || kStarts.find(rest.front()) != std::string_view::npos ||
                  (quote && before.starts_with('-') && before.ends_with('c'));
        rest.remove_prefix(1);
      } else if (rest.front() == '#') {
        break;
      } else {
        const std::string_view word = rest.substr(0, rest.find_first_of(kEnds));
        rest.remove_prefix(word.size());
        before = word;
        const std::string_view name = word.substr(word.rfind('/') + 1);
        if (command && IsSlurms(name)) {
          found(name);
        }
        command = command && (IsBeforeCommand(word) || IsAssignment(word));
      }
    }
    continued_ = line.ends_with('\\');
  }

 private:
  bool continued_ = false;
};

// Whether `scontrol update` of a node lets it take jobs again.
bool GivesBack(std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return word.find("state=resume") != std::string_view::npos ||
           word.find("state=idle") != std::string_view::npos ||
           word.find("State=RESUME") != std::string_view::npos;
  });
}

}  // namespace

std::string InsteadOfCommand(std::span<const std::string_view> words) {
  if (words.empty()) {
    return {};
  }
  const std::string_view next = words.size() > 1 ? words[1] : std::string_view();
  if (words.front() == "scontrol") {
    if (next == "show") {
      const bool nodes =
          words.size() > 2 && (words[2].starts_with("node") || words[2] == "partition");
      return nodes ? "trainyard nodes" : "trainyard status JOB";
    }
    if (next == "update" && words.size() > 2 &&
        (words[2].starts_with("node") || words[2].starts_with("Node"))) {
      return GivesBack(words) ? "trainyard undrain NODE" : "trainyard drain NODE";
    }
    const auto* const twin = std::find_if(kScontrol.begin(), kScontrol.end(),
                                          [next](const Twin& one) { return one.slurm == next; });
    return twin != kScontrol.end()
               ? "trainyard " + std::string(twin->here)
               : "trainyard status JOB, hold, release, requeue, update or drain";
  }
  const auto* const twin =
      std::find_if(kCommands.begin(), kCommands.end(),
                   [&words](const Twin& one) { return one.slurm == words.front(); });
  return twin == kCommands.end() ? std::string() : "trainyard " + std::string(twin->here);
}

std::string InsteadOfOption(std::string_view word) {
  const bool is_long = word.starts_with("--");
  if (!is_long && (word.size() < 2 || word.front() != '-')) {
    return {};
  }
  const SbatchOption* const option =
      is_long ? SbatchOptionNamed(word.substr(2, word.find('=') - 2)) : SbatchOptionOf(word[1]);
  if (option == nullptr) {
    return {};
  }
  return option->use == SbatchOption::Use::kKept
             ? fmt::format("only #SBATCH lines and 'sbatch' take it; {}", option->here)
             : std::string(option->here);
}

std::string InsteadOfSelection(std::string_view word) { return InsteadOf(kSelections, word); }

std::string InsteadOfState(std::string_view word) {
  const std::string lower = live::LowerCase(std::string(word));
  for (const Twin& twin : kStates) {
    for (const std::string_view state : base::Split(twin.slurm, " ")) {
      if (state == lower) {
        return std::string(twin.here);
      }
    }
  }
  return {};
}

std::vector<SlurmCall> SlurmCallsIn(std::string_view script) {
  std::vector<SlurmCall> calls;
  LineScan scan;
  for (int line = 1; !script.empty(); ++line) {
    const std::size_t end = std::min(script.find('\n'), script.size());
    scan.Scan(script.substr(0, end), [&](std::string_view name) {
      if (std::none_of(calls.begin(), calls.end(),
                       [name](const SlurmCall& call) { return call.command == name; })) {
        calls.push_back({.command = std::string(name), .line = line});
      }
    });
    script.remove_prefix(std::min(end + 1, script.size()));
  }
  return calls;
}

}  // namespace trainyard::requests
