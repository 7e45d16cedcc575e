// SPDX-License-Identifier: Apache-2.0
// Scripts with #SBATCH lines, as users of Slurm have them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "requests/slurm/sbatch_options.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::requests {

// What the command `sbatch` is given beside the name of a script.
struct SbatchCall {
  std::vector<std::pair<const SbatchOption*, std::string>> options{};  // they override the lines
  std::optional<std::string> text{};  // of the script, where it lies in no file
};

// A script that has been read.
class BatchScript {
 public:
  // Sets what the lines at the head of the script say. It runs once on each node unless they ask
  // for as many tasks as GPUs. Errors, all at once, each as "file:line: ...": an option that does
  // not mean anything here, a value that it does not take, a file that is no script of text. A file
  // that cannot be a script at all (kInvalidArgument): none, empty, without "#!", a pipe without
  // such lines. `call`: as sbatch reads it, whether it has such lines or not.
  [[nodiscard]] static Result<BatchScript> Read(const std::string& path, v1::JobRequest& job,
                                                const std::optional<SbatchCall>& call = {});

  // Sets the command: the script's interpreter, the script where it lies, and the arguments. The
  // rest of `job` is as it will be submitted.
  void SetCommand(const std::vector<std::string>& arguments, v1::JobRequest& job);

  // Errors: it states options that have no effect here, each as "file:line: ...".
  [[nodiscard]] Status CheckStrict() const;

  // The name of its file for output, as stated or as Slurm calls it.
  [[nodiscard]] const std::string& output() const { return output_.pattern; }
  // What a user should know who submits it, a sentence each.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  // What the controller says is wrong with the job, with the line that says so. `overridden`: keys
  // of the job that options have stated after the script.
  [[nodiscard]] Error AtLine(const Error& error,
                             const std::vector<std::string_view>& overridden) const;

 private:
  friend class ScriptReader;

  [[nodiscard]] std::string Redirection(bool once) const;

  std::string path_;
  std::vector<std::string> interpreter_;
  std::map<std::string, std::string, std::less<>> lines_;  // "train.sh:3: ", by the job's key
  struct Output {
    std::string pattern;
    std::string word;   // for the shell; empty: none is named
    std::string where;  // "train.sh:3: --output"
  };
  Output output_;
  Output errors_;
  Output input_;
  // Which attempts begin the files anew; stated nowhere: the first.
  enum class OpenMode : unsigned char { kUnstated, kAppend, kTruncate };
  OpenMode open_mode_ = OpenMode::kUnstated;
  struct WithoutEffect {
    const SbatchOption* option = nullptr;
    std::string where;  // "train.sh:3:"
  };
  std::vector<WithoutEffect> without_effect_;
  std::vector<std::string> warnings_;
};

}  // namespace trainyard::requests
