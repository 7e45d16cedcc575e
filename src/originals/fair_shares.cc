// SPDX-License-Identifier: Apache-2.0
#include "originals/fair_shares.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace trainyard::originals {
namespace {

constexpr int kHalvings = 200;      // at most; by then an interval is two neighbouring doubles
constexpr int kSecants = 12;        // at most
constexpr int kWidenings = 4;       // at most
constexpr double kNear = 0x1p-26;   // relative step after which the next secant is at the root
constexpr double kUnits = 0x1p-49;  // relative: a few units of rounding

struct Interval {
  double low = 0;
  double high = 0;
};

// Halves the interval until its ends are neighbours. The root lies beyond every point up to
// `doubt.low` and beyond none from `doubt.high` on; in between it is asked.
template <typename RootBeyond>
Interval Halve(Interval in, const Interval& doubt, RootBeyond root_beyond) {
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (in.low + in.high) / 2;
    if (middle == in.low || middle == in.high) {
      break;
    }
    const bool beyond = middle <= doubt.low || (middle < doubt.high && root_beyond(middle));
    (beyond ? in.low : in.high) = middle;
  }
  return in;
}

struct Root {
  double at = 0;
  double slope = 0;  // of the residual
};

// A root of the residual, about; any numbers if the secants lead nowhere.
template <typename Residual>
Root RootNear(double x0, double x1, Residual residual) {
  Root root;
  double y0 = residual(x0);
  for (int i = 0; i < kSecants; ++i) {
    const double y1 = residual(x1);
    root.slope = (y1 - y0) / (x1 - x0);
    const double step = y1 / root.slope;
    x0 = x1;
    y0 = y1;
    x1 -= step;
    if (!(std::abs(step) > kNear * std::abs(x1))) {
      break;
    }
  }
  root.at = x1;
  return root;
}

// The part of `in` outside of which the side of the root is known, tried at `width` from about
// where the root is, then farther off. `certain(x)` is > 0 where the root lies beyond x and all
// that is smaller, < 0 where it lies beyond neither x nor anything larger, and 0 where that cannot
// be told.
template <typename Certain>
Interval DoubtAround(double root, double width, const Interval& in, Certain certain) {
  const auto inside = [&in](double x) { return x > in.low && x < in.high; };
  Interval doubt = in;
  double low = root - width;
  for (int i = 0; i < kWidenings && inside(low) && doubt.low == in.low; ++i) {
    doubt.low = certain(low) > 0 ? low : in.low;
    low -= (root - low) * 3;
  }
  double high = root + width;
  for (int i = 0; i < kWidenings && inside(high) && doubt.high == in.high; ++i) {
    doubt.high = certain(high) < 0 ? high : in.high;
    high += (high - root) * 3;
  }
  return doubt;
}

// The bids by column, so that the terms of a sum are computed several at a time.
class FairShares {
 public:
  FairShares(std::vector<Bid>& bids, int gpus, Halving halving)
      : bids_(bids), gpus_(gpus), halving_(halving), terms_(bids.size()) {
    for (std::vector<double>* const column : {&of_gpus_, &elapsed_, &ahead_, &least_}) {
      column->reserve(bids.size());
    }
    for (const Bid& bid : bids) {
      of_gpus_.push_back(bid.gpus);
      elapsed_.push_back(bid.elapsed);
      ahead_.push_back(bid.ahead);
    }
  }

  void Set() {
    double worst = 0;  // the rho of this job cannot be avoided even with all it asks for
    for (const Bid& bid : bids_) {
      worst = std::max(worst, bid.elapsed + bid.ahead);
    }
    for (Bid& bid : bids_) {
      const double until_worst = worst - bid.elapsed;
      bid.least = bid.ahead >= until_worst ? 1.0 : bid.ahead / until_worst;
      least_.push_back(bid.least);
    }
    const double needed = Sum([this](std::size_t i) { return of_gpus_[i] * least_[i]; });
    if (needed >= gpus_) {
      Equalize(worst);
    } else {
      Centre(needed);
    }
  }

 private:
  template <typename Term>
  [[nodiscard]] double Sum(Term term) {
    double* const terms = terms_.data();
    const std::size_t size = terms_.size();
    for (std::size_t i = 0; i < size; ++i) {
      terms[i] = term(i);
    }
    return std::accumulate(terms_.begin(), terms_.end(), 0.0);  // in this order
  }

  // The GPUs do not suffice for `worst`: all jobs get the same, larger rho, which is unique.
  void Equalize(double worst) {
    const auto used = [this](double rho) {
      const double* const gpus = of_gpus_.data();
      const double* const ahead = ahead_.data();
      const double* const elapsed = elapsed_.data();
      return Sum([=](std::size_t i) { return gpus[i] * ahead[i] / (rho - elapsed[i]); });
    };
    const auto root_beyond = [&](double rho) { return used(rho) > gpus_; };
    Interval rhos{worst, 2 * worst + 1.0};
    while (root_beyond(rhos.high)) {
      rhos.high *= 2;
    }
    Interval doubt = rhos;
    if (halving_ == Halving::kInDoubt) {
      // Each term falls with rho, rounded or not, and so does their sum: what holds at one point
      // holds at all beyond it.
      const auto certain = [&](double rho) { return root_beyond(rho) ? 1 : -1; };
      // 1 / used is nearly a straight line.
      const Root root = RootNear((rhos.low + rhos.high) / 2, rhos.high,
                                 [&](double rho) { return 1 - gpus_ / used(rho); });
      doubt = DoubtAround(root.at, kUnits * root.at, rhos, certain);
    }
    const double rho = Halve(rhos, doubt, root_beyond).high;
    for (Bid& bid : bids_) {
      bid.share = bid.ahead / (rho - bid.elapsed);
    }
  }

  // Many shares reach `worst`: the analytic centre of these, found by the GPUs it leaves unused.
  void Centre(double needed) {
    const auto used = [this](double unused) {
      const double* const gpus = of_gpus_.data();
      const double* const least = least_.data();
      return Sum([=](std::size_t i) { return gpus[i] * AtCentre(gpus[i], least[i], unused); });
    };
    const auto root_beyond = [&](double unused) { return !(used(unused) > gpus_ - unused); };
    const Interval all{0, gpus_ - needed};
    Interval doubt = all;
    if (halving_ == Halving::kInDoubt) {
      // The exact `used` grows with `unused`. No term is computed with a relative error above 16
      // units of rounding (2^-53), and their sum, all being positive, adds less than one for each:
      // two sums that differ by twice that, and a little for this comparison, are in order.
      const double error = static_cast<double>(bids_.size() + 20) * 0x1p-52;
      const auto certain = [&](double unused) {
        const double sum = used(unused);
        const double left = gpus_ - unused;
        return sum * (1 + error) <= left ? 1 : sum > left * (1 + error) ? -1 : 0;
      };
      const double first = all.high / (1 + 1.5 * static_cast<double>(bids_.size()));
      const Root root = RootNear(first, 2 * first,
                                 [&](double unused) { return used(unused) - (gpus_ - unused); });
      doubt = DoubtAround(root.at, 1.25 * error * gpus_ / root.slope, all, certain);
    }
    const Interval unused = Halve(all, doubt, root_beyond);
    for (Bid& bid : bids_) {
      bid.share = AtCentre(bid.gpus, bid.least, (unused.low + unused.high) / 2);
    }
  }

  static double AtCentre(double gpus, double least, double unused) {
    const double room = 1 - least;
    const double a = gpus / unused;
    const double b = a * room + 2.5;
    return least + 3 * room / (b + std::sqrt(b * b - 6 * a * room));
  }

  std::vector<Bid>& bids_;
  const double gpus_;
  const Halving halving_;
  std::vector<double> of_gpus_, elapsed_, ahead_, least_;
  std::vector<double> terms_;  // of a sum
};

}  // namespace

void SetFairShares(std::vector<Bid>& bids, int gpus, Halving halving) {
  FairShares(bids, gpus, halving).Set();
}

}  // namespace trainyard::originals
