// SPDX-License-Identifier: Apache-2.0
// A job has many forms: what a client sends, the controller's journal and its snapshots, the native
// traces, job files and options. Each must say the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/journal.h"
#include "io/json.h"
#include "live/controller.h"
#include "live/jobs/job_request.h"
#include "model/job_fields.h"
#include "model/request/node_request.h"
#include "profile/execution_model.h"
#include "requests/job_file.h"
#include "scenario/assembly.h"
#include "store/memory_store.h"
#include "support/scratch_folder.h"
#include "trace/trace.h"
#include "trace/writers.h"
#include "trainyard/state.h"

namespace trainyard::cli {
namespace {

using Json = nlohmann::json;

class Replies final : public live::LiveOutput {
 public:
  void Reply(std::uint64_t /*call*/, v1::ClientReply reply) override { last = std::move(reply); }
  void Send(std::uint64_t /*connection*/, v1::ControllerMessage /*message*/) override {}
  void Close(std::uint64_t /*connection*/) override {}

  v1::ClientReply last;
};

constexpr int kNodes = 4;
constexpr int kGpus = 8;

Cluster FourNodes() {
  Cluster cluster;
  for (int i = 0; i < kNodes; ++i) {
    cluster.nodes.push_back({.name = fmt::format("n{}", i), .gpus = kGpus});
  }
  return cluster;
}

// A controller under some policy, with its journal in memory.
class OneController {
 public:
  explicit OneController(const std::string& policy,
                         const profile::ThroughputTable* profiles = nullptr)
      : profiles_(profiles) {
    scenario::PresetRequest names;
    names.policy = policy;
    Result<scenario::Assembly> parts = scenario::AssembleComponents(names, FourNodes(), "");
    EXPECT_TRUE(parts.ok()) << parts.error().message;
    parts_ = std::make_unique<scenario::Assembly>(std::move(parts).value());
    parts_->rates = profile::MakeMixedModel(profiles_);
    Open();
  }

  // Anew, from the journal alone.
  void Open() {
    controller_.reset();
    const std::shared_ptr<engine::Configuration> configuration = parts_->Configure(FourNodes());
    configuration->profiles = profiles_;
    configuration->policy = "any";
    configuration->traits = {.may = {.resize = profiles_ != nullptr}};
    Result<std::unique_ptr<live::Controller>> opened =
        live::Controller::Open({.engine = {.configuration = configuration},
                                .live = {.lease = std::chrono::hours(10'000)},
                                .snapshots = {.entries = 0}},
                               store_, replies_, now_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    controller_ = std::move(opened).value();
  }
  void StepAt(TimePoint now) {
    now_ = now;
    const Status status = controller_->Step(now);
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  void Connect(int node) {
    v1::AgentMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_protocol(1);
    hello.set_node(fmt::format("n{}", node));
    hello.set_gpus(kGpus);
    hello.set_start("first");
    controller_->world().OnAgent(static_cast<std::uint64_t>(node), message);
    StepAt(now_);
  }
  // Empty: taken.
  std::string Submit(const v1::JobRequest& job) {
    v1::ClientRequest request;
    *request.mutable_submit()->mutable_job() = job;
    controller_->world().OnCall(++calls_, request);
    StepAt(now_);
    return replies_.last.error().message();
  }
  v1::JobRequest RequestOf(std::size_t job) {
    return controller_->world().StatusOf(JobAt(job)).request();
  }
  [[nodiscard]] const JobSpec& SpecOf(std::size_t job) const {
    return *controller_->engine().records()[job].spec;
  }
  std::string StateDigest() { return controller_->StateDigest(); }
  [[nodiscard]] TimePoint now() const { return now_; }

 private:
  const profile::ThroughputTable* profiles_;
  std::unique_ptr<scenario::Assembly> parts_;
  store::MemoryStore store_;
  Replies replies_;
  TimePoint now_{};
  std::unique_ptr<live::Controller> controller_;
  std::uint64_t calls_ = 0;
};

// ------------------------------------------------------------------------------------ random jobs

class RandomRequests {
 public:
  explicit RandomRequests(unsigned seed) : random_(seed) {}

  v1::JobRequest Next() {
    v1::JobRequest job;
    job.set_name(Text());
    if (Maybe()) job.set_user(Text());
    if (Maybe()) job.set_queue(Text());
    if (Maybe()) job.set_cpus(Maybe() ? "1.5/gpu" : Maybe() ? "8/node" : "12");
    if (Maybe()) job.set_memory(Maybe() ? "512M/gpu" : Maybe() ? "8G/node" : "100G");
    if (Maybe()) job.set_exclusive(true);
    if (Maybe()) job.set_no_requeue(true);
    if (Maybe()) job.set_keep_on_invalid_dep(true);
    if (Maybe()) job.set_tmp("100G");
    if (Maybe()) job.set_model(Text());
    job.set_gpus(1 + Below(kNodes * kGpus));
    if (Maybe()) job.set_min_gpus(1 + Below(job.gpus()));
    if (Maybe()) job.set_max_gpus(job.gpus() + Below(100));
    if (Maybe()) job.set_time_s(Amount());
    if (Maybe()) job.set_begin_s(Amount());
    if (Maybe()) job.set_dependency("singleton");
    if (Below(4) == 0) job.set_array("7");
    if (Maybe()) job.set_batch_size(1 + static_cast<std::int64_t>(random_() % 1'000'000'000'000U));
    if (Maybe()) job.set_duration_s(Amount());
    if (Maybe()) job.set_iterations(Amount());
    if (Maybe()) job.set_deadline_s(Amount());
    job.set_best_effort(Below(4) == 0);
    AddLaunch(*job.mutable_launch());
    if (Maybe()) AddStages(*job.mutable_stages());
    if (Maybe()) AddSoftDeadlines(job);
    if (Maybe()) AddDevices(job);
    if (Maybe()) job.set_loader_workers(1 + Below(1'000'000'000));
    if (Maybe()) AddData(*job.mutable_data_set());
    for (int types = Maybe() ? 1 + Below(3) : 0; types > 0; --types) {
      job.add_gpu_types(fmt::format("type {}", types));
    }
    return job;
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  bool Maybe() { return Below(2) == 0; }
  // Letters that some form has to quote.
  std::string Text() {
    static constexpr std::array<const char*, 11> kParts{"a",  "B", "7",      ",",   "\"", "'",
                                                        "\\", "-", "\u00fc", "x y", " "};
    std::string text = "j";
    for (int parts = Below(8); parts > 0; --parts) {
      text += kParts[static_cast<std::size_t>(Below(kParts.size()))];
    }
    return text;
  }
  // From 1e-6 to 1e9, some whole.
  double Amount() {
    const double amount = std::pow(10.0, -6 + 15 * std::uniform_real_distribution<>()(random_));
    return Maybe() ? std::max(1.0, std::floor(amount)) : amount;
  }

  void AddLaunch(v1::LaunchSpec& launch) {
    if (Maybe()) launch.set_priority(Below(2000) - 1000);
    if (Maybe()) launch.set_max_restarts(1 + Below(1000));
    if (Maybe()) launch.set_grace(1 + Below(1'000'000));
    launch.set_workers(static_cast<v1::LaunchSpec::Workers>(Below(3)));
    if (launch.workers() == v1::LaunchSpec::PER_NODE && Maybe()) {
      launch.set_workers_per_node(1 + Below(4));
      if (Maybe()) launch.set_tasks(2 * launch.workers_per_node());
    }
    if (launch.workers() != v1::LaunchSpec::EMULATED) AddLauncher(launch);
    launch.set_working_directory("/tmp/x");
    launch.add_command("train");
    if (Maybe()) launch.add_command(Text());
    for (int variables = Below(3); variables > 0; --variables) {
      v1::EnvironmentVariable& variable = *launch.add_environment();
      variable.set_name(fmt::format("A{}", variables));
      variable.set_value(Text());
    }
  }
  void AddLauncher(v1::LaunchSpec& launch) {
    launch.set_launcher(static_cast<v1::LaunchSpec::Launcher>(Below(3)));
    if (launch.launcher() == v1::LaunchSpec::MPI || Maybe()) {
      if (Maybe()) launch.set_venv("/opt/venv");
      return;
    }
    v1::Container& container = *launch.mutable_container();
    container.set_image("registry.example/train:2");
    for (int mounts = Below(3); mounts > 0; --mounts) {
      container.add_mounts(fmt::format("/a{}:/b:ro+rprivate", mounts));
    }
    if (Maybe()) container.set_workdir("/work");
    if (Maybe()) container.set_name("mine");
  }
  void AddStages(v1::StageTimes& stages) {
    stages.set_iteration_s(Amount());
    stages.add_stages_s(Maybe() ? 0 : Amount());
    stages.add_stages_s(Amount());
    stages.add_stages_s(Maybe() ? 0 : Amount());
  }
  void AddSoftDeadlines(v1::JobRequest& job) {
    double after = 1e3 * std::uniform_real_distribution<>()(random_) + 1e-3;
    double value = 1e6;
    for (int count = 1 + Below(3); count > 0; --count, after += 1 + Below(1000)) {
      value /= 1 + Below(3);
      v1::SoftDeadline& deadline = *job.add_soft_deadlines();
      deadline.set_after_s(after);
      deadline.set_value(value);
    }
    if (Maybe()) {
      job.set_deadline_s(job.soft_deadlines(0).after_s());
    } else {
      job.clear_deadline_s();
    }
  }
  // Of a few: jobs that name the same one say the same of it.
  void AddData(v1::DataSet& data) {
    const int number = Below(5);
    data.set_name(fmt::format("set {}, \"{}\"", number, number));
    data.set_mib(1 + 1000 * number);
    data.set_home(fmt::format("{}/data/set {}", number % 2 == 0 ? "" : "store:", number));
  }
  // As many as it asks for, node by node.
  void AddDevices(v1::JobRequest& job) {
    int left = job.gpus();
    for (int node = 0; left > 0; ++node) {
      v1::NodeGrant& grant = *job.add_devices();
      grant.set_node(fmt::format("n{}", node));
      for (int gpu = 0; gpu < kGpus && left > 0; ++gpu, --left) {
        grant.add_gpus(gpu);
      }
    }
  }

  std::mt19937_64 random_;
};

// ---------------------------------------------------------------------------------------- compare

// Every field that traces state by its name, in the bytes of snapshots.
std::map<std::string, std::string> FieldsOf(const JobSpec& job) {
  std::map<std::string, std::string> fields{{"has traits", job.traits ? "yes" : "no"}};
  model::ForEachJobField<model::IsInTraces>([&](const auto& field) {
    auto value = model::ValueOf(field, job);
    StateStream state;
    state(value);
    fields[std::string(field.info.name)] = state.TakeBytes();
  });
  return fields;
}

JobSpec FromSnapshot(JobSpec job) {
  StateStream out;
  out(job);
  StateStream in(out.bytes());
  JobSpec read;
  in(read);
  EXPECT_TRUE(in.complete());
  return read;
}

std::vector<JobSpec> FromTrace(const std::vector<JobSpec>& jobs, std::string_view format) {
  const Cluster cluster = FourNodes();
  trace::Trace trace{
      .path = "jobs", .jobs = jobs, .lines = std::vector<std::int64_t>(jobs.size(), 1)};
  for (const NodeSpec& node : cluster.nodes) {
    trace.device_nodes.push_back({.name = node.name});
  }
  const Result<std::string> text = trace::WriteTrace(trace, format);
  EXPECT_TRUE(text.ok()) << text.error().message;
  const ScratchFolder folder;
  Result<trace::Trace> read =
      trace::ReadTrace(folder.Write("jobs", text.value()), {.format = std::string(format)});
  EXPECT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(trace::BindDevices(read.value(), cluster).ok());
  return read.value().jobs;
}

// The keys of a job file that say what the request says.
Json JobFileOf(const v1::JobRequest& job) {
  Json file;
  const v1::LaunchSpec& launch = job.launch();
  const auto add = [&file](const char* key, const auto& value, bool stated) {
    if (stated) {
      file[key] = value;
    }
  };
  add("name", job.name(), true);
  add("user", job.user(), !job.user().empty());
  add("queue", job.queue(), !job.queue().empty());
  add("model", job.model(), !job.model().empty());
  add("gpus", job.gpus(), true);
  add("min_gpus", job.min_gpus(), job.min_gpus() > 0);
  add("max_gpus", job.max_gpus(), job.max_gpus() > 0);
  add("time", job.time_s(), job.has_time_s());
  add("begin", job.begin_s(), job.has_begin_s());
  add("dependency", job.dependency(), !job.dependency().empty());
  add("array", job.array(), !job.array().empty());
  add("cpus", job.cpus(), !job.cpus().empty());
  add("memory", job.memory(), !job.memory().empty());
  add("exclusive", true, job.exclusive());
  add("no_requeue", true, job.no_requeue());
  add("keep_on_invalid_dep", true, job.keep_on_invalid_dep());
  add("tmp", job.tmp(), !job.tmp().empty());
  add("batch_size", job.batch_size(), job.batch_size() > 0);
  add("duration", job.duration_s(), job.has_duration_s());
  add("iterations", job.iterations(), job.has_iterations());
  add("deadline", job.deadline_s(), job.has_deadline_s());
  add("best_effort", true, job.best_effort());
  add("priority", launch.priority(), launch.priority() != 0);
  add("max_restarts", launch.max_restarts(), launch.max_restarts() > 0);
  add("grace", static_cast<double>(launch.grace()) / 1000, launch.grace() > 0);
  constexpr std::array<const char*, 3> kWorkers{"per-gpu", "per-node", "emulated"};
  add("workers", kWorkers[static_cast<std::size_t>(launch.workers())],
      launch.workers_per_node() == 0);
  add("tasks_per_node", launch.workers_per_node(), launch.workers_per_node() > 0);
  add("tasks", launch.tasks(), launch.tasks() > 0);
  constexpr std::array<const char*, 3> kLaunchers{"plain", "torchrun", "mpi"};
  add("launcher", kLaunchers[static_cast<std::size_t>(launch.launcher())], true);
  add("venv", launch.venv(), !launch.venv().empty());
  const v1::Container& container = launch.container();
  add("container_image", container.image(), launch.has_container());
  add("container_mounts", fmt::format("{}", fmt::join(container.mounts(), ",")),
      container.mounts_size() > 0);
  add("container_workdir", container.workdir(), !container.workdir().empty());
  add("container_name", container.name(), !container.name().empty());
  add("cwd", launch.working_directory(), true);
  add("command", std::vector(launch.command().begin(), launch.command().end()), true);
  add("loader_workers", job.loader_workers(), job.loader_workers() > 0);
  for (const v1::EnvironmentVariable& variable : launch.environment()) {
    file["env"][variable.name()] = variable.value();
  }
  if (job.has_stages()) {
    file["stages"] = std::vector(job.stages().stages_s().begin(), job.stages().stages_s().end());
    file["iteration_time"] = job.stages().iteration_s();
  }
  std::string text;
  for (const v1::SoftDeadline& deadline : job.soft_deadlines()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", deadline.after_s(), deadline.value());
  }
  add("soft_deadlines", text, !text.empty());
  text.clear();
  for (const v1::NodeGrant& grant : job.devices()) {
    text +=
        fmt::format("{}{}:{}", text.empty() ? "" : " ", grant.node(), fmt::join(grant.gpus(), ","));
  }
  add("devices", text, !text.empty());
  add("gpu_types", fmt::format("{}", fmt::join(job.gpu_types(), "|")), job.gpu_types_size() > 0);
  add("data_set",
      fmt::format("{}={}:{}", job.data_set().name(), job.data_set().home(), job.data_set().mib()),
      job.has_data_set());
  return file;
}

std::string TomlOf(const Json& file) {
  std::string text;
  for (const auto& [key, value] : file.items()) {
    if (!value.is_object()) {
      text += fmt::format("{} = {}\n", key, value.dump());
      continue;
    }
    text += key + " = {";
    for (const auto& [name, inner] : value.items()) {
      text += fmt::format("{}{} = {}", text.ends_with('{') ? "" : ", ", name, inner.dump());
    }
    text += "}\n";
  }
  return text;
}

// On the command line all values are texts; the command follows the options.
v1::JobRequest FromOptions(const Json& file) {
  v1::JobRequest job;
  for (const requests::JobOption& option : requests::JobOptions()) {
    const auto value = file.find(option.key);
    if (value == file.end()) {
      continue;
    }
    std::vector<std::string> texts{value->is_string() ? value->get<std::string>() : value->dump()};
    if (value->is_array()) {
      texts[0] = texts[0].substr(1, texts[0].size() - 2);
    } else if (value->is_object()) {
      texts.clear();
      for (const auto& [name, inner] : value->items()) {
        texts.push_back(name + "=" + inner.get<std::string>());
      }
    }
    if (option.key == "time" || option.key == "begin") {
      texts[0] += "s";  // as an option it needs a unit
    }
    for (const std::string& text : texts) {
      const Status set = requests::SetJobOption(option.key, text, job);
      EXPECT_TRUE(set.ok()) << set.error().message;
    }
  }
  for (const Json& word : file["command"]) {
    job.mutable_launch()->add_command(word.get<std::string>());
  }
  return job;
}

// Soft deadlines bring the deadline with them; variables are by name.
v1::JobRequest Canonical(v1::JobRequest job) {
  if (job.soft_deadlines_size() > 0) {
    job.set_deadline_s(job.soft_deadlines(0).after_s());
  }
  auto& environment = *job.mutable_launch()->mutable_environment();
  std::sort(environment.begin(), environment.end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  return job;
}

TEST(JobFormsTest, EveryJobThatAClientMaySendIsTheSameInEachForm) {
  constexpr std::size_t kJobs = 300;
  RandomRequests random(1);
  OneController first("fifo");
  std::vector<JobSpec> specs;
  for (std::size_t i = 0; i < kJobs; ++i) {
    v1::JobRequest request = random.Next();
    request.set_name(fmt::format("{}{}", request.name(), i));  // unique, as in a trace
    first.StepAt(first.now() + Duration{static_cast<std::int64_t>(i * i)});
    ASSERT_EQ(first.Submit(request), "") << request.DebugString();
    specs.push_back(first.SpecOf(i));
    v1::JobRequest shown = request;  // to clients, less what they need not see
    shown.mutable_launch()->clear_command();
    shown.mutable_launch()->clear_environment();
    EXPECT_EQ(first.RequestOf(i).DebugString(), shown.DebugString());
    EXPECT_EQ(FieldsOf(FromSnapshot(specs[i])), FieldsOf(specs[i])) << request.DebugString();
  }
  first.Open();
  const std::vector<JobSpec> csv = FromTrace(specs, "native");
  const std::vector<JobSpec> jsonl = FromTrace(specs, "jsonl");
  ASSERT_EQ(csv.size(), kJobs);
  ASSERT_EQ(jsonl.size(), kJobs);
  OneController again("fifo");
  for (std::size_t i = 0; i < kJobs; ++i) {
    const std::map<std::string, std::string> fields = FieldsOf(specs[i]);
    EXPECT_EQ(FieldsOf(first.SpecOf(i)), fields) << "journal " << i;
    EXPECT_EQ(FieldsOf(csv[i]), fields) << "csv " << i;
    EXPECT_EQ(FieldsOf(jsonl[i]), fields) << "jsonl " << i;
    again.StepAt(specs[i].submit);
    ASSERT_EQ(again.Submit(live::RequestOf(specs[i], FourNodes())), "");
    EXPECT_EQ(FieldsOf(again.SpecOf(i)), fields) << "request of a trace " << i;
  }
}

TEST(JobFormsTest, JobFilesAndOptionsSayWhatARequestSays) {
  RandomRequests random(2);
  const ScratchFolder folder;
  for (int i = 0; i < 300; ++i) {
    const v1::JobRequest request = Canonical(random.Next());
    const Json file = JobFileOf(request);
    v1::JobRequest json;
    Status read = requests::ReadJobFile(folder.Write("job.json", file.dump()), json);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(Canonical(json).DebugString(), request.DebugString());
    v1::JobRequest toml;
    read = requests::ReadJobFile(folder.Write("job.toml", TomlOf(file)), toml);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(Canonical(toml).DebugString(), request.DebugString());
    EXPECT_EQ(Canonical(FromOptions(file)).DebugString(), request.DebugString());
  }
}

// --------------------------------------------------------------------------- all fields, one by
// one

// Another value than that of a new job, for each type. They go together: 2 GPUs everywhere, and the
// first soft deadline is the deadline.
constexpr int kSubmitSecond = 100;
void FormChange(std::string& text) { text = "x, \"y\""; }
template <std::signed_integral T>
void FormChange(T& number) {
  number = 2;
}
void FormChange(bool& flag) { flag = true; }
void FormChange(std::optional<double>& amount) { amount = 2.5; }
void FormChange(std::optional<Duration>& time) { time = FromSeconds(2.5); }
void FormChange(TimePoint& time) { time = AtSeconds(kSubmitSecond); }
void FormChange(std::optional<TimePoint>& time) { time = AtSeconds(150.5); }
void FormChange(std::optional<StageTimes>& stages) {
  stages = {.iteration = 0.5, .stages = {0.25, 0.5, 0.125}};
}
void FormChange(std::vector<SoftDeadline>& deadlines) {
  deadlines = {{AtSeconds(150.5), 2}, {AtSeconds(160), 1}};
}
void FormChange(Slices& devices) { devices = {{.node = NodeAt(1), .gpus = 0b11}}; }
void FormChange(std::optional<DataSet>& data) { data = {.name = "d", .mib = 5, .home = "/data/d"}; }
void FormChange(std::vector<std::string>& names) { names = {"A100", "V100"}; }
void FormChange(CpuRequest& cpus) { cpus = {.milli = 3500, .per = Per::kGpu}; }
void FormChange(MemoryRequest& memory) { memory = {.mib = 1536, .per = Per::kNode}; }
void FormChange(TmpRequest& space) { space = {.mib = 2048}; }
void FormChange(NodeCount& nodes) { nodes = {.least = 1, .most = 2}; }
void FormChange(std::vector<NodeId>& nodes) { nodes = {NodeAt(1), NodeAt(300)}; }

// Two jobs that have another value in every field between them: a best-effort job has no deadline.
std::vector<JobSpec> JobsWithAllFields() {
  model::JobDraft draft;
  model::ForEachJobField([&](const auto& field) { FormChange(draft.At(field)); });
  draft.traits.dependency = "afterok:1:2_3,singleton";  // texts of a form
  draft.traits.array = "1-3,7%2";
  draft.request.node_list = "n[0-1]";
  draft.request.exclude = "n3,m";
  draft.request.constraint = "a&(b|!c),d*2";
  draft.request.licenses = "x:2,y";
  model::JobDraft best_effort = draft;
  draft.spec.best_effort = false;
  best_effort.spec.name = "other";
  best_effort.spec.deadline.reset();
  best_effort.traits.deadlines.clear();
  std::vector<JobSpec> jobs;
  jobs.push_back(std::move(draft).Take());
  jobs.push_back(std::move(best_effort).Take());
  model::ForEachJobField([&](const auto& field) {
    EXPECT_TRUE(model::States(jobs[0], field) || model::States(jobs[1], field)) << field.info.name;
  });
  return jobs;
}

template <bool (*kIsMeant)(const model::JobFieldInfo&) = model::IsAnyField>
void ExpectSame(const char* form, const JobSpec& is, const JobSpec& was) {
  model::ForEachJobField<kIsMeant>([&](const auto& field) {
    EXPECT_TRUE(model::ValueOf(field, is) == model::ValueOf(field, was))
        << "field '" << field.info.name << "' is lost or changed by: " << form;
  });
}

JobSpec FromJournal(const JobSpec& job) {
  std::string bytes;
  engine::Journal journal([&bytes](std::string_view block) -> Status {
    bytes += block;
    return {};
  });
  journal.Append(model::Batch{
      .now = job.submit,
      .events = {{.at = job.submit,
                  .fact = model::fact::Submitted{.spec = std::make_shared<const JobSpec>(job)}}}});
  journal.Append(std::span<const model::Action>());
  EXPECT_TRUE(journal.Flush().ok());
  engine::ReplayWorld world(bytes);
  const model::Batch batch = world.Next(std::nullopt);
  EXPECT_TRUE(world.status().ok());
  return *batch.events.at(0).spec();
}

JobSpec FromRequest(v1::JobRequest request) {
  request.mutable_launch()->add_command("train");
  const Result<model::JobDraft> draft =
      live::DraftOf(request, AtSeconds(kSubmitSecond), FourNodes());
  EXPECT_TRUE(draft.ok()) << draft.error().message;
  return model::JobDraft(draft.value()).Take();
}

// As users write it, by its type.
std::string TextOf(const model::JobFieldInfo&, const std::string& text) { return text; }
template <std::signed_integral T>
std::string TextOf(const model::JobFieldInfo&, T number) {
  return std::to_string(number);
}
std::string TextOf(const model::JobFieldInfo&, bool flag) { return flag ? "true" : "false"; }
std::string TextOf(const model::JobFieldInfo&, const std::optional<double>& amount) {
  return fmt::format("{}", *amount);
}
std::string TextOf(const model::JobFieldInfo&, const std::optional<Duration>& time) {
  return fmt::format("{}s", Seconds(*time));
}
std::string TextOf(const model::JobFieldInfo&, const std::optional<TimePoint>& time) {
  return fmt::format("{}s", Seconds(*time - AtSeconds(kSubmitSecond)));
}
std::string TextOf(const model::JobFieldInfo&, const std::optional<StageTimes>& stages) {
  return fmt::format("{}", fmt::join(stages->stages, ","));
}
std::string TextOf(const model::JobFieldInfo& info, const std::vector<SoftDeadline>& deadlines) {
  std::string text;
  for (const SoftDeadline& one : deadlines) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", TextOf(info, std::optional(one.at)),
                        one.value);
  }
  return text;
}
std::string TextOf(const model::JobFieldInfo&, const std::optional<DataSet>& data) {
  return fmt::format("{}={}:{}", data->name, data->home, data->mib);
}
std::string TextOf(const model::JobFieldInfo&, const Slices& /*of FormChange*/) { return "n1:0-1"; }
template <model::HasText T>
std::string TextOf(const model::JobFieldInfo&, const T& value) {
  return model::TextOf(value);
}
std::string TextOf(const model::JobFieldInfo&, const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, "|"));
}

// What a job file has of the job, and options.
std::map<std::string, std::string> SettingsOf(const JobSpec& job) {
  std::map<std::string, std::string> settings;
  model::ForEachJobField<model::IsInRequests>([&](const auto& field) {
    if (model::States(job, field)) {
      settings[std::string(field.info.name)] = TextOf(field.info, model::ValueOf(field, job));
    }
  });
  settings["iteration_time"] = "0.5";
  return settings;
}

TEST(JobFormsTest, EveryFieldOfTheTableComesBackFromEachForm) {
  const std::vector<JobSpec> jobs = JobsWithAllFields();
  const std::vector<JobSpec> csv = FromTrace(jobs, "native");
  const std::vector<JobSpec> jsonl = FromTrace(jobs, "jsonl");
  ASSERT_EQ(csv.size(), jobs.size());
  ASSERT_EQ(jsonl.size(), jobs.size());
  const ScratchFolder folder;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobSpec& job = jobs[i];
    ExpectSame("snapshot", FromSnapshot(job), job);
    ExpectSame("journal", FromJournal(job), job);
    ExpectSame<model::IsInTraces>("csv", csv[i], job);
    ExpectSame<model::IsInTraces>("jsonl", jsonl[i], job);
    ExpectSame<model::IsInRequests>("request", FromRequest(live::RequestOf(job, FourNodes())), job);
    std::string toml;
    v1::JobRequest options;
    for (const auto& [key, text] : SettingsOf(job)) {
      toml += fmt::format("{} = {}\n", key, text == "true" ? text : Json(text).dump());
      const Status set = requests::SetJobOption(key, text, options);
      EXPECT_TRUE(set.ok()) << set.error().message;
    }
    v1::JobRequest file;
    const Status read = requests::ReadJobFile(folder.Write("job.toml", toml), file);
    ASSERT_TRUE(read.ok()) << read.error().message;
    ExpectSame<model::IsInRequests>("job file", FromRequest(file), job);
    // By name "gpus" comes before the ends of its range, which it clears.
    ExpectSame<model::IsInRequests>("options", FromRequest(options), job);
  }
}

// The journal alone decides as the controller did that wrote it.
TEST(JobFormsTest, AReplayOfJobsWithRangesDecidesTheSame) {
  std::string profiles = "model,batch_size,gpus,iterations_per_second\n";
  for (int gpus = 1; gpus <= kGpus * kNodes; gpus *= 2) {
    profiles += fmt::format("m,32,{},{}\n", gpus, std::pow(gpus, 0.9));
  }
  const ScratchFolder folder;
  const Result<profile::ThroughputTable> table =
      profile::ThroughputTable::Read(folder.Write("p.csv", profiles));
  ASSERT_TRUE(table.ok()) << table.error().message;
  for (const char* const policy : {"elastic-edf", "elasticflow", "optimus"}) {
    OneController controller(policy, &table.value());
    for (int node = 0; node < kNodes; ++node) {
      controller.Connect(node);
    }
    std::mt19937 random(7);
    for (int i = 0; i < 60; ++i) {
      v1::JobRequest job;
      job.set_model("m");
      job.set_batch_size(32);
      job.set_iterations(1000 + static_cast<double>(random() % 100'000));
      job.set_deadline_s(static_cast<double>(job.iterations()));
      job.set_gpus(1 << (random() % 4));
      job.set_min_gpus(random() % 2 == 0 ? job.gpus() : 0);
      job.set_max_gpus(random() % 2 == 0 ? 2 * job.gpus() : 0);
      job.mutable_launch()->set_workers(v1::LaunchSpec::EMULATED);
      job.set_loader_workers(1);
      controller.StepAt(controller.now() + std::chrono::seconds(random() % 300));
      ASSERT_EQ(controller.Submit(job), "");
    }
    const std::string before = controller.StateDigest();
    controller.Open();
    EXPECT_EQ(controller.StateDigest(), before) << policy;
  }
}

TEST(JobFormsTest, ARangeThatDoesNotHoldTheGpusIsRefused) {
  OneController controller("fifo");
  const auto refusal = [&controller](int least, int gpus, int most) {
    v1::JobRequest job;
    job.set_gpus(gpus);
    job.set_min_gpus(least);
    job.set_max_gpus(most);
    job.mutable_launch()->add_command("train");
    return controller.Submit(job);
  };
  EXPECT_EQ(refusal(4, 2, 0), "it asks for 2 GPUs and for at least 4; expected min_gpus <= gpus");
  EXPECT_EQ(refusal(0, 2, 1), "it asks for 2 GPUs and for at most 1; expected gpus <= max_gpus");
  EXPECT_EQ(refusal(-1, 2, 0), "min_gpus is -1; expected an integer from 1 to 2147483647");
  EXPECT_EQ(refusal(2, 2, 0), "");
  EXPECT_EQ(refusal(0, 2, 2), "");
}

}  // namespace
}  // namespace trainyard::cli
