// SPDX-License-Identifier: Apache-2.0
#include "cost/constant_fit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "triax/error.hpp"

namespace triax::cost {

namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

/// Solves a system whose matrix is symmetric and positive definite, for several right sides (columns of `right`).
Matrix solve(Matrix matrix, Matrix right) {
  const std::size_t size = matrix.size();
  for (std::size_t column = 0; column < size; ++column)
    for (std::size_t row = 0; row < size; ++row) {
      if (row == column) continue;
      const double factor = matrix[row][column] / matrix[column][column];
      for (std::size_t at = 0; at < size; ++at) matrix[row][at] -= factor * matrix[column][at];
      for (std::size_t at = 0; at < right[row].size(); ++at) right[row][at] -= factor * right[column][at];
    }
  for (std::size_t row = 0; row < size; ++row)
    for (double& value : right[row]) value /= matrix[row][row];
  return right;
}

double squares(const Vector& of) {
  return std::inner_product(of.begin(), of.end(), of.begin(), 0.0);
}

class Fit {
 public:
  Fit(Cluster& cluster, const std::vector<FittedConstant>& constants, const std::vector<MeasuredTime>& times)
      : cluster_(cluster), constants_(constants), times_(times) {
    for (const FittedConstant& of : constants) {
      TRIAX_REQUIRE(of.constant->value > 0 && of.constant->width > 0,
                    "a constant to fit has value {} and width {}; both must be above 0", of.constant->value,
                    of.constant->width);
      logs_.push_back(std::log(of.constant->value));
      widths_.push_back(of.constant->width);
    }
    for (const MeasuredTime& of : times)
      TRIAX_REQUIRE(of.seconds > 0 && of.width > 0, "a measured time is {} s with width {}; both must be above 0",
                    of.seconds, of.width);
    priors_ = logs_;
  }

  void run() {
    constexpr int kMaxSteps = 40;
    constexpr double kMaxDamping = 1e6, kSmallGain = 1e-6;
    Vector residuals = residuals_of(logs_);
    double damping = 1e-3;
    for (int step = 0; step < kMaxSteps && damping < kMaxDamping; ++step) {
      const Matrix slopes = slopes_of(residuals);
      const Matrix change = solve(normal_of(slopes, damping), products_of(slopes, residuals));
      Vector trial = logs_;
      for (std::size_t at = 0; at < trial.size(); ++at)
        trial[at] = std::min(trial[at] - change[at][0], std::log(constants_[at].most));
      const Vector moved = residuals_of(trial);
      const double before = squares(residuals), after = squares(moved);
      if (!(after < before)) {
        damping *= 10;
        continue;
      }
      damping /= 3;
      logs_ = trial;
      residuals = moved;
      if (before - after < kSmallGain * before) break;
    }
    finish(residuals);
  }

 private:
  void set(const Vector& logs) {
    for (std::size_t at = 0; at < logs.size(); ++at) constants_[at].constant->value = std::exp(logs[at]);
  }

  /// Errors of the times, then distances from the priors, in units of their widths.
  Vector residuals_of(const Vector& logs) {
    set(logs);
    Vector out;
    for (const MeasuredTime& of : times_) out.push_back(std::log(of.predict(cluster_) / of.seconds) / of.width);
    for (std::size_t at = 0; at < logs.size(); ++at) out.push_back((logs[at] - priors_[at]) / widths_[at]);
    return out;
  }

  /// By constant.
  Matrix slopes_of(const Vector& residuals) {
    constexpr double kStep = 1e-4;
    Matrix out;
    for (std::size_t at = 0; at < logs_.size(); ++at) {
      Vector moved = logs_;
      moved[at] -= kStep; // down: values have an upper limit
      Vector slope = residuals_of(moved);
      for (std::size_t row = 0; row < slope.size(); ++row) slope[row] = (residuals[row] - slope[row]) / kStep;
      out.push_back(std::move(slope));
    }
    return out;
  }

  /// A column.
  static Matrix products_of(const Matrix& slopes, const Vector& residuals) {
    Matrix out;
    for (const Vector& slope : slopes)
      out.push_back({std::inner_product(slope.begin(), slope.end(), residuals.begin(), 0.0)});
    return out;
  }

  static Matrix normal_of(const Matrix& slopes, double damping) {
    Matrix out(slopes.size(), Vector(slopes.size()));
    for (std::size_t row = 0; row < slopes.size(); ++row)
      for (std::size_t column = 0; column < slopes.size(); ++column)
        out[row][column] = std::inner_product(slopes[row].begin(), slopes[row].end(), slopes[column].begin(), 0.0) *
                           (row == column ? 1 + damping : 1);
    return out;
  }

  /// Sets the constants. `residuals`: of logs_.
  void finish(const Vector& residuals) {
    double sum = 0;
    for (std::size_t at = 0; at < times_.size(); ++at) sum += residuals[at] * residuals[at];
    Matrix identity(logs_.size(), Vector(logs_.size()));
    for (std::size_t at = 0; at < identity.size(); ++at) identity[at][at] = 1;
    // The times have errors as large as those that are left; the priors stay as they are.
    const double scale = std::max(1.0, times_.empty() ? 1.0 : sum / static_cast<double>(times_.size()));
    Matrix slopes = slopes_of(residuals);
    for (Vector& slope : slopes)
      for (std::size_t at = 0; at < times_.size(); ++at) slope[at] /= std::sqrt(scale);
    const Matrix covariance = solve(normal_of(slopes, 0), identity);
    set(logs_);
    for (std::size_t at = 0; at < logs_.size(); ++at) {
      constants_[at].constant->origin = Origin::measured;
      constants_[at].constant->width = std::sqrt(covariance[at][at]);
    }
  }

  Cluster& cluster_;
  const std::vector<FittedConstant>& constants_;
  const std::vector<MeasuredTime>& times_;
  Vector logs_, priors_, widths_;
};

} // namespace

void fit_constants(Cluster& cluster, const std::vector<FittedConstant>& constants,
                   const std::vector<MeasuredTime>& times) {
  Fit(cluster, constants, times).run();
}

} // namespace triax::cost
