// SPDX-License-Identifier: Apache-2.0
#include "live/jobs/job_request.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "live/notices/notices.h"
#include "model/conditions.h"
#include "model/node_classes.h"
#include "model/request/node_request.h"
#include "model/request/tasks.h"
#include "profile/throughput_table.h"
#include "service/calls.h"
#include "supervisor/worker_environment.h"

namespace trainyard::live {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::size_t kMaxName = 256;
constexpr std::size_t kMaxDataName = 80;  // each byte may take three in the name of a folder
constexpr std::size_t kMaxPath = 4096;
constexpr std::size_t kMaxCommand = std::size_t{256} << 10;
constexpr std::size_t kMaxScript = std::size_t{1} << 20;

// ----------------------------------------------------------------------------------- by their path

// One field of a message. `M` is Message, or const Message.
template <typename M>
struct FieldAt {
  M* message = nullptr;
  const FieldDescriptor* field = nullptr;

  FieldAt(std::string_view path, M& request) : message(&request) {
    while (true) {
      const std::size_t dot = path.find('.');
      field = message->GetDescriptor()->FindFieldByName(std::string(path.substr(0, dot)));
      CHECK(field != nullptr);
      if (dot == std::string_view::npos) {
        return;
      }
      if constexpr (std::is_const_v<M>) {
        message = &reflection().GetMessage(*message, field);
      } else {
        message = reflection().MutableMessage(message, field);
      }
      path.remove_prefix(dot + 1);
    }
  }
  [[nodiscard]] const google::protobuf::Reflection& reflection() const {
    return *message->GetReflection();
  }
};

using ReadAt = FieldAt<const Message>;

std::int64_t IntegerAt(std::string_view path, const v1::JobRequest& request) {
  const ReadAt at(path, request);
  return at.field->cpp_type() == FieldDescriptor::CPPTYPE_INT32
             ? at.reflection().GetInt32(*at.message, at.field)
             : at.reflection().GetInt64(*at.message, at.field);
}

// Nothing: it is not stated.
std::optional<double> NumberAt(std::string_view path, const v1::JobRequest& request) {
  const ReadAt at(path, request);
  return at.reflection().HasField(*at.message, at.field)
             ? std::optional(at.reflection().GetDouble(*at.message, at.field))
             : std::nullopt;
}

// -------------------------------------------------------------------------------- request to draft

bool IsName(const std::string& text, std::size_t most = kMaxName) {
  return text.size() <= most && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 32 || c == 127;
         });
}

bool IsAmount(double value, double most) {
  return std::isfinite(value) && value > 0 && value <= most;
}

// A time that is not 0 when it is kept in microseconds.
bool IsTime(double seconds, double most) {
  return IsAmount(seconds, most) && FromSeconds(seconds) > Duration{0};
}

std::string NumberText(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.12g", value);
  return text.data();
}

Error Bad(const model::JobFieldInfo& info, const std::string& value, const std::string& expected) {
  return InvalidArgument(std::string(info.name) + " is " + value + "; expected " + expected);
}

// Takes the values of one request, by their types, or says what is wrong with them.
class RequestReader {
 public:
  RequestReader(const v1::JobRequest& request, TimePoint submit, const Cluster& cluster)
      : request_(request), submit_(submit), cluster_(cluster) {}

  Status Take(const model::JobFieldInfo& info, std::string& text) {
    const ReadAt at(info.request, request_);
    text = at.reflection().GetString(*at.message, at.field);
    const auto most = std::max(kMaxName, static_cast<std::size_t>(info.bounds.most));
    return IsName(text, most) ? Status()
                              : InvalidArgument("the " + std::string(info.name) +
                                                " has control characters or more than " +
                                                std::to_string(most) + " bytes");
  }
  // An empty one is not stated.
  template <model::HasText T>
  Status Take(const model::JobFieldInfo& info, T& value) {
    const ReadAt at(info.request, request_);
    const std::string text = at.reflection().GetString(*at.message, at.field);
    if (model::HasPer<T> && model::IsPerTask(text)) {
      return Bad(info, text, "those of each node (16/node), as tasks are known to 'submit' alone");
    }
    return text.empty() || model::ReadText(text, value)
               ? Status()
               : Bad(info, text, std::string(model::ExpectedText(value)));
  }
  // 0 is a number that is not stated.
  template <std::signed_integral T>
  Status Take(const model::JobFieldInfo& info, T& number) {
    number = static_cast<T>(IntegerAt(info.request, request_));
    const auto value = static_cast<double>(number);
    return (number == 0 && !info.required) ||
                   (value >= info.bounds.least && value <= info.bounds.most)
               ? Status()
               : Bad(info, std::to_string(number), model::ExpectedInteger(info));
  }
  Status Take(const model::JobFieldInfo& info, bool& flag) {
    const ReadAt at(info.request, request_);
    flag = at.reflection().GetBool(*at.message, at.field);
    return {};
  }
  Status Take(const model::JobFieldInfo& info, std::optional<double>& amount) {
    amount = NumberAt(info.request, request_);
    return !amount || IsAmount(*amount, info.bounds.most)
               ? Status()
               : Bad(info, NumberText(*amount), model::ExpectedAmount(info));
  }
  Status Take(const model::JobFieldInfo& info, std::optional<Duration>& time) {
    const std::optional<double> seconds = NumberAt(info.request, request_);
    if (!seconds) {
      return {};
    }
    if (!IsTime(*seconds, info.bounds.most)) {
      return Bad(info, NumberText(*seconds) + " s",
                 "1e-6 to " + NumberText(info.bounds.most) + " s");
    }
    time = FromSeconds(*seconds);
    return {};
  }
  // Clients count from the submission.
  Status Take(const model::JobFieldInfo& info, std::optional<TimePoint>& time) {
    std::optional<Duration> after;
    Status status = Take(info, after);
    if (after) {
      time = submit_ + *after;
    }
    return status;
  }
  Status Take(const model::JobFieldInfo& info, std::optional<StageTimes>& stages) {
    if (!request_.has_stages()) {
      return {};
    }
    const v1::StageTimes& stated = request_.stages();
    const auto is_time = [&info](double time) {
      return time == 0 || IsAmount(time, info.bounds.most);
    };
    stages = {.iteration = stated.iteration_s(),
              .stages = {stated.stages_s().begin(), stated.stages_s().end()}};
    return stages->stages.size() == 3 && IsAmount(stages->iteration, info.bounds.most) &&
                   std::all_of(stages->stages.begin(), stages->stages.end(), is_time) &&
                   stages->stages != std::vector<double>(3)
               ? Status()
               : InvalidArgument(
                     "the stages are not the times of loading, GPU and network, with that of an "
                     "iteration");
  }
  Status Take(const model::JobFieldInfo& info, std::vector<SoftDeadline>& deadlines) {
    double before = 0;
    double worth = std::numeric_limits<double>::max();
    for (const v1::SoftDeadline& deadline : request_.soft_deadlines()) {
      if (!IsTime(deadline.after_s(), info.bounds.most) || deadline.after_s() < before ||
          !IsAmount(deadline.value(), worth)) {
        return InvalidArgument(
            "the soft deadlines are not in order; expected rising times, each worth more than 0 "
            "and not more than the one before");
      }
      before = deadline.after_s();
      worth = deadline.value();
      deadlines.push_back({submit_ + FromSeconds(before), worth});
    }
    return {};
  }
  Status Take(const model::JobFieldInfo& info, std::optional<DataSet>& data) {
    if (!request_.has_data_set()) {
      return {};
    }
    data = DataOf(request_.data_set());
    if (data->name.empty() || !IsName(data->name, kMaxDataName)) {
      return InvalidArgument(
          "the name of the data set is empty, or has control characters or more than 80 bytes");
    }
    if (!IsName(data->home, kMaxPath)) {
      return InvalidArgument("the folder of data set '" + data->name +
                             "' has control characters or more than 4096 bytes");
    }
    const auto mib = static_cast<double>(data->mib);
    return mib >= info.bounds.least && mib <= info.bounds.most
               ? Status()
               : InvalidArgument("data set '" + data->name + "' has " + std::to_string(data->mib) +
                                 " MiB; expected " + model::ExpectedInteger(info));
  }
  // A set of names.
  Status Take(const model::JobFieldInfo& info, std::vector<std::string>& names) {
    const ReadAt at(info.request, request_);
    const auto stated = at.reflection().GetRepeatedFieldRef<std::string>(*at.message, at.field);
    const std::set<std::string> sorted(stated.begin(), stated.end());
    names.assign(sorted.begin(), sorted.end());
    const auto is_bad = [](const std::string& name) {
      return name.empty() || !IsName(name) || name.find('|') != std::string::npos;
    };
    const std::vector<std::string> all = model::TypesOf(names).names;
    if (std::any_of(all.begin(), all.end(), is_bad)) {
      return InvalidArgument("one of the " + std::string(info.name) +
                             " is empty or has control characters, a bar or more than 256 bytes");
    }
    return names.size() == 1 || all.size() == names.size()
               ? Status()
               : InvalidArgument("one of several " + std::string(info.name) +
                                 " has a comma; expected names, or one text with all of them in an "
                                 "order ('H100,A100')");
  }
  // GPUs of this cluster by the names of their nodes, in node order.
  Status Take(const model::JobFieldInfo& /*info*/, Slices& slices) {
    std::map<NodeId, std::uint64_t> gpus;
    for (const v1::NodeGrant& there : request_.devices()) {
      const auto node =
          std::find_if(cluster_.nodes.begin(), cluster_.nodes.end(),
                       [&there](const NodeSpec& one) { return one.name == there.node(); });
      if (node == cluster_.nodes.end()) {
        return Failed("it names GPUs of the unknown node '" + there.node() + "'");
      }
      for (const int gpu : there.gpus()) {
        if (gpu < 0 || gpu >= node->gpus) {
          return Failed("it names GPU " + std::to_string(gpu) + " of node '" + there.node() +
                        "', which has " + std::to_string(node->gpus));
        }
        gpus[NodeAt(static_cast<std::size_t>(node - cluster_.nodes.begin()))] |= std::uint64_t{1}
                                                                                 << gpu;
      }
    }
    for (const auto& [node, mask] : gpus) {
      slices.push_back({.node = node, .gpus = mask});
    }
    return {};
  }

 private:
  const v1::JobRequest& request_;
  TimePoint submit_;
  const Cluster& cluster_;
};

// A job on CPUs alone states nothing that is of GPUs.
Status CheckWithoutGpus(const model::JobDraft& draft) {
  const JobTraits& traits = draft.traits;
  const char* const stated = traits.range != GpuRange{} ? "a range of GPUs"
                             : !traits.devices.empty()  ? "GPUs by name"
                             : traits.stages            ? "stages that share GPUs"
                                                        : nullptr;
  return stated == nullptr
             ? Status()
             : InvalidArgument(std::string("it asks for no GPUs and states ") + stated +
                               "; expected that left out, or a number of GPUs");
}

// What does not go together. Best-effort jobs have no deadlines; the first soft deadline of others
// is their deadline.
Status Settle(model::JobDraft& draft) {
  JobSpec& job = draft.spec;
  const GpuRange& range = draft.traits.range;
  const std::vector<SoftDeadline>& soft = draft.traits.deadlines;
  if (job.gpus == 0) {
    RETURN_IF_ERROR(CheckWithoutGpus(draft));
  }
  if (range.least > job.gpus) {
    return InvalidArgument("it asks for " + GpusText(job.gpus) + " and for at least " +
                           std::to_string(range.least) + "; expected min_gpus <= gpus");
  }
  if (!range.Holds(job.gpus)) {
    return InvalidArgument("it asks for " + GpusText(job.gpus) + " and for at most " +
                           std::to_string(range.most) + "; expected gpus <= max_gpus");
  }
  if (!soft.empty() && job.deadline.value_or(soft.front().at) != soft.front().at) {
    return InvalidArgument(
        "its deadline is not the first of its soft deadlines; expected the same time, or none "
        "beside soft deadlines");
  }
  if (!draft.traits.dependency.empty()) {
    RETURN_IF_ERROR(model::ParseDependency(draft.traits.dependency));
  }
  if (!draft.traits.array.empty()) {
    RETURN_IF_ERROR(model::ParseArray(draft.traits.array));
  }
  RETURN_IF_ERROR(model::CheckTexts(draft.request));
  if (job.best_effort) {
    job.deadline.reset();
    draft.traits.deadlines.clear();
  } else if (!soft.empty()) {
    job.deadline = soft.front().at;
  }
  return {};
}

std::size_t SizeOf(const v1::LaunchSpec& launch) {
  const v1::Container& container = launch.container();
  std::size_t size = launch.working_directory().size() + launch.venv().size() +
                     container.image().size() + container.workdir().size() +
                     container.name().size();
  for (const std::string& mount : container.mounts()) {
    size += mount.size() + 1;
  }
  for (const std::string& word : launch.command()) {
    size += word.size() + 1;
  }
  for (const v1::EnvironmentVariable& variable : launch.environment()) {
    size += variable.name().size() + variable.value().size() + 2;
  }
  return size;
}

bool IsVariable(const v1::EnvironmentVariable& variable) {
  return !variable.name().empty() && variable.name().find('=') == std::string::npos &&
         variable.name().find('\0') == std::string::npos &&
         variable.value().find('\0') == std::string::npos;
}

// As podman takes it.
bool IsContainerName(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
                     }) &&
         std::isalnum(static_cast<unsigned char>(name.front())) != 0;
}

bool IsAbsolute(const std::string& path) { return path.starts_with("/"); }

// SOURCE:TARGET[:FLAG+FLAG...]
bool IsMount(const std::string& mount) {
  const std::vector<std::string_view> parts = base::Split(mount, ":");
  return (parts.size() == 2 || parts.size() == 3) && parts[0].starts_with("/") &&
         parts[1].starts_with("/") && parts.back().find(',') == std::string_view::npos;
}

std::string MistakeOf(const v1::Container& container) {
  if (container.image().empty()) {
    const char* const given = container.mounts_size() > 0    ? "--container-mounts"
                              : !container.workdir().empty() ? "--container-workdir"
                                                             : "--container-name";
    return std::string(given) + " needs a container; expected --container-image with it";
  }
  if (container.image().starts_with("-")) {
    return "--container-image begins with '-'; expected the name of an image";
  }
  if (!container.workdir().empty() && !IsAbsolute(container.workdir())) {
    return "--container-workdir is '" + container.workdir() + "'; expected an absolute path";
  }
  if (!container.name().empty() && !IsContainerName(container.name())) {
    return "--container-name is '" + container.name() +
           "'; expected letters, digits, '_', '.' and '-', beginning with a letter or digit";
  }
  for (const std::string& mount : container.mounts()) {
    if (!IsMount(mount)) {
      return "--container-mounts has '" + mount +
             "'; expected SOURCE:TARGET[:FLAG+FLAG] with absolute paths";
    }
  }
  return {};
}

// What does not go together.
std::string MistakeOfLauncher(const v1::LaunchSpec& launch) {
  if (!v1::LaunchSpec::Launcher_IsValid(launch.launcher())) {
    return "the launcher is not known; expected a client of the controller's version";
  }
  const int tasks = launch.workers_per_node();
  if (tasks < 0 || tasks > model::kMostTasksOnNode ||
      (tasks > 0 && launch.workers() != v1::LaunchSpec::PER_NODE)) {
    return "the number of workers of a node is none; expected --tasks-per-node from 1 to " +
           std::to_string(model::kMostTasksOnNode) + ", and no other workers";
  }
  if (launch.tasks() < 0 || (launch.tasks() > 0 && (tasks == 0 || launch.tasks() % tasks != 0))) {
    return "the workers in all are no multiple of those of a node; expected a client of the "
           "controller's version";
  }
  if (launch.workers() == v1::LaunchSpec::EMULATED &&
      (launch.launcher() != v1::LaunchSpec::PLAIN || !launch.venv().empty() ||
       launch.has_container())) {
    return "--workers emulated starts no process; expected no launcher, container or virtual "
           "environment";
  }
  if (!launch.venv().empty() && !IsAbsolute(launch.venv())) {
    return "--venv is '" + launch.venv() + "'; expected an absolute path";
  }
  if (!v1::LaunchSpec::Input_IsValid(launch.input())) {
    return "the input is not known; expected a client of the controller's version";
  }
  if (!launch.has_container()) {
    return {};
  }
  if (launch.launcher() == v1::LaunchSpec::MPI) {
    return "--launcher mpi starts its workers outside of containers; expected no "
           "--container-image, or another launcher";
  }
  if (!launch.venv().empty()) {
    return "a container has the environment of its image; expected no --venv with "
           "--container-image";
  }
  return MistakeOf(launch.container());
}

// What is wrong with what the workers are to run; empty: nothing.
std::string MistakeOf(const v1::LaunchSpec& launch) {
  if (launch.command().empty() && launch.workers() != v1::LaunchSpec::EMULATED) {
    return "there is no command; expected one after '--'";
  }
  if (!launch.command().empty() && launch.command(0).empty()) {
    return "the command is empty";
  }
  if (SizeOf(launch) > kMaxCommand) {
    return "command and environment have more than 256 KiB";
  }
  if (launch.batch().script().size() > kMaxScript) {
    return "the script has more than 1 MiB";
  }
  if (!std::all_of(launch.environment().begin(), launch.environment().end(), IsVariable)) {
    return "an environment variable has no proper name or value; expected NAME=VALUE";
  }
  for (const v1::EnvironmentVariable& variable : launch.environment()) {
    if (supervisor::IsReservedVariable(variable.name())) {
      return "the environment variable " + variable.name() +
             " is set by Trainyard itself; expected another name";
    }
  }
  if (std::string mistake = MistakeOfNotify(launch); !mistake.empty()) {
    return mistake;
  }
  if (launch.grace() < 0 || launch.max_restarts() < 0) {
    return "the grace period or the number of restarts is negative";
  }
  return MistakeOfLauncher(launch);
}

// ---------------------------------------------------------------------------------- job to request

// Puts the values of one job, by their types.
class RequestWriter {
 public:
  RequestWriter(const JobSpec& job, const Cluster& cluster, v1::JobRequest& request)
      : job_(job), cluster_(cluster), request_(request) {}

  template <typename T>
  void Put(const model::JobFieldInfo& info, const T& value) {
    if constexpr (std::signed_integral<T>) {
      SetInRequest(info.request, std::int64_t{value}, request_);
    } else {
      SetInRequest(info.request, value, request_);
    }
  }
  template <typename T>
  void Put(const model::JobFieldInfo& info, const std::optional<T>& value) {
    if (value) {
      Put(info, *value);
    }
  }
  template <model::HasText T>
  void Put(const model::JobFieldInfo& info, const T& value) {
    SetInRequest(info.request, value == T{} ? std::string() : model::TextOf(value), request_);
  }
  void Put(const model::JobFieldInfo& info, const Duration& time) { Put(info, Seconds(time)); }
  void Put(const model::JobFieldInfo& info, const TimePoint& time) {
    Put(info, time - job_.submit);
  }
  void Put(const model::JobFieldInfo& /*info*/, const StageTimes& stages) {
    request_.mutable_stages()->set_iteration_s(stages.iteration);
    request_.mutable_stages()->mutable_stages_s()->Assign(stages.stages.begin(),
                                                          stages.stages.end());
  }
  void Put(const model::JobFieldInfo& /*info*/, const DataSet& data) {
    *request_.mutable_data_set() = MessageOf(data);
  }
  void Put(const model::JobFieldInfo& /*info*/, const std::vector<SoftDeadline>& deadlines) {
    for (const SoftDeadline& deadline : deadlines) {
      v1::SoftDeadline& soft = *request_.add_soft_deadlines();
      soft.set_after_s(Seconds(deadline.at - job_.submit));
      soft.set_value(deadline.value);
    }
  }
  void Put(const model::JobFieldInfo& /*info*/, const Slices& slices) {
    for (const Slice& slice : slices) {
      *request_.add_devices() = GrantOf(slice, cluster_);
    }
  }

 private:
  const JobSpec& job_;
  const Cluster& cluster_;
  v1::JobRequest& request_;
};

}  // namespace

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

DataSet DataOf(const v1::DataSet& data) {
  return {.name = data.name(), .mib = data.mib(), .home = data.home()};
}

v1::DataSet MessageOf(const DataSet& data) {
  v1::DataSet message;
  message.set_name(data.name);
  message.set_mib(data.mib);
  message.set_home(data.home);
  return message;
}

void AddGpus(std::uint64_t mask, google::protobuf::RepeatedField<std::int32_t>& gpus) {
  for (; mask != 0; mask &= mask - 1) {
    gpus.Add(std::countr_zero(mask));
  }
}

std::string DevicesText(const Slice& slice, const Cluster& cluster) {
  std::string text;
  for (int from = 0; from < kMaxGpusPerNode; ++from) {
    if ((slice.gpus >> from & 1U) == 0) {
      continue;
    }
    int to = from;
    while (to + 1 < kMaxGpusPerNode && (slice.gpus >> (to + 1) & 1U) != 0) {
      ++to;
    }
    text += (text.empty() ? "" : ",") + std::to_string(from);
    text += to > from ? "-" + std::to_string(to) : "";
    from = to;
  }
  return cluster.nodes[Index(slice.node)].name + ":" + text;
}

v1::NodeGrant GrantOf(const Slice& slice, const Cluster& cluster) {
  v1::NodeGrant grant;
  grant.set_node(cluster.nodes[Index(slice.node)].name);
  AddGpus(slice.gpus, *grant.mutable_gpus());
  return grant;
}

Result<model::JobDraft> DraftOf(const v1::JobRequest& request, TimePoint submit,
                                const Cluster& cluster) {
  model::JobDraft draft;
  draft.spec.submit = submit;
  if (!request.has_gpus()) {
    return InvalidArgument("it states no GPUs; expected a number, or 0: it runs on CPUs alone");
  }
  RequestReader reader(request, submit, cluster);
  Status status;
  model::ForEachJobField<model::IsInRequests>([&](const auto& field) {
    if (status.ok()) {
      status = reader.Take(field.info, draft.At(field));
    }
  });
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(Settle(draft));
  if (std::string mistake = MistakeOf(request.launch()); !mistake.empty()) {
    return InvalidArgument(std::move(mistake));
  }
  return draft;
}

NodeRequest AsksOf(const v1::JobRequest& request) {
  model::JobDraft draft;
  const Cluster no_nodes;
  RequestReader reader(request, TimePoint{}, no_nodes);
  model::ForEachJobField<model::IsInRequests>(
      [&]<typename Owner, typename T>(const model::JobField<Owner, T>& field) {
        if constexpr (std::is_same_v<Owner, NodeRequest>) {
          static_cast<void>(reader.Take(field.info, draft.At(field)).ok());
        }
      });
  return draft.request;
}

v1::JobRequest RequestOf(const JobSpec& job, const Cluster& cluster,
                         std::span<const std::string> command) {
  v1::JobRequest request;
  RequestWriter writer(job, cluster, request);
  model::ForEachJobField<model::IsInRequests>(
      [&](const auto& field) { writer.Put(field.info, model::ValueOf(field, job)); });
  v1::LaunchSpec& launch = *request.mutable_launch();
  launch.set_workers(command.empty() ? v1::LaunchSpec::EMULATED : v1::LaunchSpec::PER_GPU);
  launch.mutable_command()->Assign(command.begin(), command.end());
  return request;
}

void SetInRequest(std::string_view path, const RequestValue& value, v1::JobRequest& request) {
  const FieldAt<Message> at(path, request);
  const google::protobuf::Reflection& fields = at.reflection();
  if (const auto* const text = std::get_if<std::string>(&value)) {
    fields.SetString(at.message, at.field, *text);
  } else if (const auto* const texts = std::get_if<std::vector<std::string>>(&value)) {
    fields.ClearField(at.message, at.field);
    for (const std::string& one : *texts) {
      fields.AddString(at.message, at.field, one);
    }
  } else if (const auto* const number = std::get_if<double>(&value)) {
    fields.SetDouble(at.message, at.field, *number);
  } else if (const bool* const flag = std::get_if<bool>(&value)) {
    fields.SetBool(at.message, at.field, *flag);
  } else if (at.field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
    fields.SetInt32(at.message, at.field, static_cast<std::int32_t>(std::get<std::int64_t>(value)));
  } else {
    fields.SetInt64(at.message, at.field, std::get<std::int64_t>(value));
  }
}

const v1::Changed* ChangedOf(const v1::ClientReply& reply) {
  const v1::Changed* changed = nullptr;
  service::VisitReply(reply, [&](const auto& part) {
    if constexpr (requires { part.changed(); }) {
      changed = part.has_changed() ? &part.changed() : nullptr;
    }
  });
  return changed;
}

std::vector<std::string> CommandOf(const v1::LaunchSpec& launch) {
  constexpr int kOfShell = 4;  // /bin/sh -c TEXT sh
  const bool is_wrapped = launch.has_batch() && launch.command_size() > kOfShell &&
                          std::string_view(launch.command(2)).ends_with(kRunsRest);
  return {launch.command().begin() + (is_wrapped ? kOfShell : 0), launch.command().end()};
}

}  // namespace trainyard::live
