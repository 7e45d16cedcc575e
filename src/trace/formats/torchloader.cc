// SPDX-License-Identifier: Apache-2.0
#include "trace/formats/torchloader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/decimal.h"
#include "base/text.h"
#include "base/try.h"
#include "io/csv_field.h"
#include "trace/csv_format.h"
#include "trace/device_list.h"
#include "trace/own_format.h"
#include "trace/trace_builder.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kDevicesColumn = "cuda_device";
constexpr std::string_view kWorldSize = "world_size";
constexpr std::string_view kOutputFolder = "output_folder";
constexpr std::string_view kMaster = "master";
constexpr std::string_view kPort = "port";
// Columns of the published file that mean nothing to a scheduler.
constexpr std::array<std::string_view, 6> kIgnored{kOutputFolder, kMaster,       kPort,
                                                   "start_iter",  "start_epoch", "node_size"};
constexpr std::size_t kMostDepthDigits = 9;
constexpr std::int64_t kMostCount = 1'000'000'000;  // of workers, iterations, epochs

// Where the digits begin with which the name of a model ends.
std::size_t DepthAt(std::string_view model) {
  return model.find_last_not_of("0123456789") + 1;  // 0 where there is nothing else
}

std::string DescribeNode(const DeviceNode& node) {
  return node.name.empty() ? fmt::format("number {}", node.position + 1)
                           : fmt::format("'{}'", node.name);
}

// The node of the cluster, or -1.
int Resolve(const DeviceNode& node, const Cluster& cluster) {
  if (node.name.empty()) {
    return node.position < static_cast<int>(cluster.nodes.size()) ? node.position : -1;
  }
  const auto found = std::find_if(cluster.nodes.begin(), cluster.nodes.end(),
                                  [&](const NodeSpec& spec) { return spec.name == node.name; });
  return found == cluster.nodes.end() ? -1 : static_cast<int>(found - cluster.nodes.begin());
}

Error Unknown(const Trace& trace, std::size_t job, const DeviceNode& node, const Cluster& cluster) {
  std::vector<std::string_view> known;
  constexpr std::size_t kMostShown = 20;
  for (std::size_t i = 0; i < std::min(cluster.nodes.size(), kMostShown); ++i) {
    known.push_back(cluster.nodes[i].name);
  }
  return BadInput(fmt::format("{}:{}: node {} is not in cluster '{}'; expected one of {}{}",
                              trace.path, trace.lines[job], DescribeNode(node), cluster.name,
                              base::Join(known, ", "),
                              cluster.nodes.size() > kMostShown ? ", ..." : ""));
}

// In the order of the cluster's nodes.
Result<Slices> BindSlices(const Trace& trace, std::size_t job, const Cluster& cluster) {
  Slices bound;
  for (const Slice& slice : trace.jobs[job].traits->devices) {
    const DeviceNode& node = trace.device_nodes[Index(slice.node)];
    const int position = Resolve(node, cluster);
    if (position < 0) {
      return Unknown(trace, job, node, cluster);
    }
    const NodeSpec& spec = cluster.nodes[static_cast<std::size_t>(position)];
    const int last = kMaxGpusPerNode - 1 - std::countl_zero(slice.gpus);
    if (last >= spec.gpus) {
      return BadInput(fmt::format("{}:{}: GPU {} of node '{}' is asked for; expected one below {}",
                                  trace.path, trace.lines[job], last, spec.name, spec.gpus));
    }
    bound.push_back({.node = NodeAt(static_cast<std::size_t>(position)), .gpus = slice.gpus});
  }
  std::sort(bound.begin(), bound.end(),
            [](const Slice& a, const Slice& b) { return a.node < b.node; });
  const auto twice = std::adjacent_find(
      bound.begin(), bound.end(), [](const Slice& a, const Slice& b) { return a.node == b.node; });
  if (twice != bound.end()) {
    return BadInput(fmt::format("{}:{}: node '{}' is named twice; expected each node once",
                                trace.path, trace.lines[job],
                                cluster.nodes[Index(twice->node)].name));
  }
  return bound;
}

bool LooksLikeTorchloader(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  const std::vector<std::string_view> names = base::Split(header, ",");
  const auto has = [&](std::string_view name) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view one) { return base::Trim(one) == name; });
  };
  return has("arch") && has("depth") && has(kDevicesColumn);
}

// The file as a proper table: blanks after commas are gone, and the quotes within the brackets of a
// device list are single ones. Lines and all else stay.
io::TextFile WithoutStrayQuotes(io::TextFile file) {
  std::string text;
  text.reserve(file.text.size());
  int depth = 0;  // of brackets
  for (const char c : file.text) {
    if (c == '\n') {
      depth = 0;
    }
    if (c == ' ' && (text.empty() || text.back() == ',' || text.back() == '\n')) {
      continue;
    }
    depth += c == '[' || c == '{' ? 1 : 0;
    depth -= c == ']' || c == '}' ? 1 : 0;
    text.push_back(c == '"' && depth > 0 ? '\'' : c);
  }
  file.text = std::move(text);
  return file;
}

class TorchloaderRows {
 public:
  // `apps`: gets one for each row that is read; may be null. Errors: a required column is missing,
  // a column is unknown.
  [[nodiscard]] static Result<TorchloaderRows> Of(const io::CsvTable& table,
                                                  std::vector<TorchloaderApp>* apps);

  // Errors: a column that is not as it should be; a GPU that is named twice.
  [[nodiscard]] Result<JobRow> Read(const io::CsvRow& row);
  // Those that the rows have named so far; JobTraits::devices count them (Trace::device_nodes).
  [[nodiscard]] const std::vector<DeviceNode>& nodes() const { return device_lists_.nodes(); }

 private:
  int arch_ = -1;
  int depth_ = -1;
  int batch_ = -1;
  int workers_ = -1;
  int arrival_ = -1;
  int devices_ = -1;
  int iterations_ = -1;  // of an epoch
  int epochs_ = -1;
  int world_size_ = -1;  // all devices together; -1: no such column
  int output_folder_ = -1;
  DeviceLists device_lists_;
  std::vector<TorchloaderApp>* apps_ = nullptr;
};

Result<TorchloaderRows> TorchloaderRows::Of(const io::CsvTable& table,
                                            std::vector<TorchloaderApp>* apps) {
  TorchloaderRows rows;
  rows.apps_ = apps;
  const std::array<std::pair<std::string_view, int*>, 8> required{{{"arch", &rows.arch_},
                                                                   {"depth", &rows.depth_},
                                                                   {"batch", &rows.batch_},
                                                                   {"workers", &rows.workers_},
                                                                   {"arrival_time", &rows.arrival_},
                                                                   {kDevicesColumn, &rows.devices_},
                                                                   {"end_iter", &rows.iterations_},
                                                                   {"end_epoch", &rows.epochs_}}};
  std::vector<std::string_view> known(kIgnored.begin(), kIgnored.end());
  for (const auto& [name, position] : required) {
    ASSIGN_OR_RETURN(*position, table.Require({name}));
    known.push_back(name);
  }
  rows.world_size_ = table.Column({kWorldSize});
  rows.output_folder_ = table.Column({kOutputFolder});
  known.push_back(kWorldSize);
  RETURN_IF_ERROR(table.CheckKnown(known));
  return rows;
}

Result<JobRow> TorchloaderRows::Read(const io::CsvRow& row) {
  JobSpec job;
  if (row.Text(arch_).empty()) {
    return row.Bad(arch_, "the name of an architecture");
  }
  ASSIGN_OR_RETURN(const std::int64_t depth, row.Integer(depth_, 0, kMostCount));
  ASSIGN_OR_RETURN(const std::int64_t batch, row.Integer(batch_, 1, kMostCount));
  ASSIGN_OR_RETURN(const std::int64_t workers, row.Integer(workers_, 0, kMostCount));
  ASSIGN_OR_RETURN(const std::int64_t iterations, row.Integer(iterations_, 1, kMostCount));
  ASSIGN_OR_RETURN(const std::int64_t epochs, row.Integer(epochs_, 1, kMostCount));
  ASSIGN_OR_RETURN(const double arrival, TraceSeconds(row, arrival_));
  ASSIGN_OR_RETURN(Slices devices, device_lists_.Read(row, devices_));
  job.model = fmt::format("{}{}", row.Text(arch_), depth);
  job.name = fmt::format("{}-line{}", job.model, row.line());
  job.batch_size = batch;
  job.submit = AtSeconds(arrival);
  job.iterations = static_cast<double>(iterations) * static_cast<double>(epochs);
  job.gpus = model::CountGpus(devices);
  job.traits = std::make_shared<JobTraits>(
      JobTraits{.devices = std::move(devices), .loader_workers = static_cast<int>(workers)});
  if (apps_ != nullptr) {
    apps_->push_back({.arch = std::string(row.Text(arch_)),
                      .depth = depth,
                      .output_folder = std::string(row.Text(output_folder_)),
                      .iterations_of_epoch = iterations,
                      .epochs = epochs});
  }
  JobRow read{.job = std::move(job), .left_out = {}};
  if (world_size_ >= 0) {
    ASSIGN_OR_RETURN(const std::int64_t size, row.Integer(world_size_, 1, kMostCount));
    if (size != read.job.gpus) {
      read.remarks.emplace_back(
          "its world_size is not the number of its devices; the devices count");
    }
  }
  return read;
}

Result<TorchloaderWorkload> ReadWorkload(io::TextStream text, const TraceOptions& options,
                                         bool with_apps) {
  ASSIGN_OR_RETURN(io::TextFile file, io::TextFile::Of(std::move(text)));
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Of(WithoutStrayQuotes(std::move(file))));
  TorchloaderWorkload workload{.states_addresses = table.Column({kMaster, kPort}) >= 0};
  ASSIGN_OR_RETURN(TorchloaderRows rows,
                   TorchloaderRows::Of(table, with_apps ? &workload.apps : nullptr));
  ASSIGN_OR_RETURN(workload.trace, ReadRows(table, rows, kTorchloaderFormat.shown.name, options));
  workload.trace.device_nodes = rows.nodes();
  return workload;
}

Result<Trace> ReadTorchloader(io::TextStream text, const TraceOptions& options) {
  ASSIGN_OR_RETURN(TorchloaderWorkload workload, ReadWorkload(std::move(text), options, false));
  return std::move(workload.trace);
}

}  // namespace

std::optional<std::string_view> MissingForTorchloader(const JobSpec& job) {
  const std::size_t depth = DepthAt(job.model);
  if (depth == 0 || depth == job.model.size() ||
      job.model.find_first_of(" ,\"") != std::string::npos) {
    return "a model with a number at its end, such as vgg13";
  }
  if (job.model.size() - depth > kMostDepthDigits ||
      (job.model[depth] == '0' && depth + 1 < job.model.size())) {
    return "a depth of the model without zeros in front and below 1000000000";
  }
  if (job.batch_size < 1 || job.batch_size > kMostCount) {
    return "a batch size of at most 1000000000";
  }
  if (!job.iterations || *job.iterations < 1 || *job.iterations > kMostCount ||
      *job.iterations != std::floor(*job.iterations)) {
    return "a whole number of iterations, at most 1000000000";
  }
  if (job.traits == nullptr || job.traits->devices.empty()) {
    return "the GPUs that the job is to run on";
  }
  return std::nullopt;
}

constexpr OwnFormat kTorchloaderFormat{
    .shown = {.name = "torchloader",
              .help = "torchloader workload (jobs name GPUs and loader workers)"},
    .looks_like = LooksLikeTorchloader,
    .read = ReadTorchloader};

Result<TorchloaderWorkload> ReadTorchloaderWorkload(const std::string& path) {
  ASSIGN_OR_RETURN(io::TextStream text, io::TextStream::Open(path));
  return ReadWorkload(std::move(text), {}, true);
}

Status BindDevices(Trace& trace, const Cluster& cluster) {
  if (trace.device_nodes.empty()) {
    return {};
  }
  for (std::size_t job = 0; job < trace.jobs.size(); ++job) {
    if (!trace.jobs[job].traits || trace.jobs[job].traits->devices.empty()) {
      continue;
    }
    ASSIGN_OR_RETURN(Slices devices, BindSlices(trace, job, cluster));
    auto traits = std::make_shared<JobTraits>(*trace.jobs[job].traits);
    traits->devices = std::move(devices);
    trace.jobs[job].traits = std::move(traits);
  }
  trace.device_nodes.clear();
  return {};
}

std::string WriteTorchloader(const TraceView& trace) {
  std::string text = "arch,depth,batch,workers,arrival_time,cuda_device,end_iter,end_epoch\n";
  for (const JobSpec& job : trace.jobs) {
    CHECK(!MissingForTorchloader(job).has_value());
    const std::size_t depth = DepthAt(job.model);
    io::AppendCsvField(std::string_view(job.model).substr(0, depth), text);
    fmt::format_to(std::back_inserter(text), ",{},{},{},", job.model.substr(depth), job.batch_size,
                   job.traits->loader_workers);
    base::AppendSeconds(job.submit.time_since_epoch(), text);
    fmt::format_to(std::back_inserter(text), ",{},{},1\n",
                   DeviceListOf(job.traits->devices, trace.nodes), *job.iterations);
  }
  return text;
}

}  // namespace trainyard::trace
