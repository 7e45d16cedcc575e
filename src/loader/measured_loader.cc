// SPDX-License-Identifier: Apache-2.0
#include "loader/measured_loader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "loader/least_squares.h"

namespace trainyard::loader {
namespace {

struct MeasuredPoint {
  double workers = 0;
  double seconds = 0;  // of an image
  double samples = 0;
};

std::vector<MeasuredPoint> PointsOf(const profile::MeasuredBook& book, const std::string& model) {
  std::vector<MeasuredPoint> points;
  const profile::MeasuredKey first{.model = model, .batch_size = 0, .gpu_type = {}, .gpus = 0};
  for (auto entry = book.entries().lower_bound(first); entry != book.entries().end(); ++entry) {
    const profile::MeasuredKey& key = entry->first;
    if (key.model != model || key.batch_size != 0 || !key.gpu_type.empty()) {
      break;
    }
    if (const profile::Samples& samples = entry->second.Of(profile::Measure::kLoader);
        samples.counts()) {
      points.push_back({.workers = static_cast<double>(key.gpus),
                        .seconds = samples.median(),
                        .samples = static_cast<double>(samples.values().size())});
    }
  }
  return points;
}

double SecondsOf(const LoaderCoefficients& loader, double workers) {
  return loader.per_worker / workers + loader.shared;
}

// By how much the measured points lie above the curve: the median.
double ScaleOf(const LoaderCoefficients& stated, const std::vector<MeasuredPoint>& points) {
  std::vector<double> ratios;
  ratios.reserve(points.size());
  for (const MeasuredPoint& point : points) {
    ratios.push_back(point.seconds / SecondsOf(stated, point.workers));
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios[(ratios.size() - 1) / 2];
}

class MeasuredLoader final : public profile::MeasuredModel {
 public:
  MeasuredLoader(profile::MeasuredBook book, const ExecutionModel& stated, const Cluster& cluster,
                 std::pair<const LoaderProfiles*, WorkersFrom> side)
      : MeasuredModel(std::move(book), stated, cluster),
        profiles_(*side.first),
        model_(profiles_.model()),
        from_(side.second) {}

  [[nodiscard]] std::optional<double> LoaderSeconds(const std::string& model,
                                                    int workers) const override {
    return profiles_.catalog().Find(model).ok() ? std::optional(SecondsOf(model_.loader, workers))
                                                : std::nullopt;
  }
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& co_runners) const override {
    if (book().empty() || job.profile_row < 0 || !profiles_.Check(job).ok()) {
      return MeasuredModel::ThroughputUnder(job, grant, co_runners);
    }
    return Throughput::OfRate(LoadedRateUnder({.loader = LoaderOf(job.model), .from = from_},
                                              Rate(job, grant.gpus), job, grant, co_runners));
  }

 private:
  const LoaderCoefficients& LoaderOf(const std::string& model) const {
    if (refined_at_ != book().added()) {
      refined_at_ = book().added();
      refined_.clear();
    }
    const auto known = refined_.find(model);
    return known != refined_.end()
               ? known->second
               : refined_.emplace(model, RefinedLoader(model_.loader, book(), model)).first->second;
  }

  const LoaderProfiles& profiles_;
  const ThroughputModel model_;
  const WorkersFrom from_;
  // By model, as of so many additions to the book.
  mutable std::map<std::string, LoaderCoefficients> refined_;
  mutable std::uint64_t refined_at_ = 0;
};

}  // namespace

LoaderCoefficients RefinedLoader(const LoaderCoefficients& stated,
                                 const profile::MeasuredBook& book, const std::string& model) {
  constexpr double kWeightOfStated = 0.03;  // of a residual; squared a part of a sample
  const std::vector<MeasuredPoint> points = PointsOf(book, model);
  if (points.empty()) {
    return stated;
  }
  DesignMatrix design{.columns = 2};
  std::vector<double> target;
  // Relative residuals, as of the fit of runs.
  const auto add = [&](double per_worker, double shared, double weight) {
    design.cells.insert(design.cells.end(), {weight * per_worker, weight * shared});
    target.push_back(weight);
  };
  for (const MeasuredPoint& point : points) {
    add(1 / point.workers / point.seconds, 1 / point.seconds, std::sqrt(point.samples));
  }
  if (SecondsOf(stated, 1) > 0) {
    const double scale = ScaleOf(stated, points);
    const double largest = scale * std::max(stated.per_worker, stated.shared);
    const auto hold = [&](double coefficient, double per_worker, double shared) {
      const double unit = coefficient > 0 ? scale * coefficient : largest;
      add(per_worker / unit, shared / unit, kWeightOfStated);
      target.back() = coefficient > 0 ? kWeightOfStated : 0;
    };
    hold(stated.per_worker, 1, 0);
    hold(stated.shared, 0, 1);
  }
  const std::vector<double> fitted = NonNegativeLeastSquares(design, target);
  return {.per_worker = fitted[0], .shared = fitted[1]};
}

profile::Corrector RefinedBy(const LoaderProfiles& profiles, WorkersFrom from) {
  return [&profiles, from](profile::MeasuredBook book, const ExecutionModel& stated,
                           const Cluster& cluster) -> std::unique_ptr<profile::MeasuredModel> {
    return std::make_unique<MeasuredLoader>(std::move(book), stated, cluster,
                                            std::pair(&profiles, from));
  };
}

}  // namespace trainyard::loader
