// SPDX-License-Identifier: Apache-2.0
// Fits constants of a cluster to measured times: least squares of relative errors, with a prior for each constant.
//
// Threads: pure functions. Errors: those of the predictions; Error if a value or a width is not above 0.
#pragma once

#include <functional>
#include <vector>

#include "cost/cluster.hpp"

namespace triax::cost {

/// A measured time, and how the cost model predicts it.
struct MeasuredTime {
  double seconds = 0; // above 0
  std::function<double(const Cluster&)> predict;
  double width = 0.1; // standard deviation of the model's error, as a fraction; above 0
};

/// A constant to fit: its value and width are the prior, both above 0.
struct FittedConstant {
  Constant* constant = nullptr; // in the cluster that is fitted
  double most = 0;              // largest value that is allowed
};

/// Gauss-Newton with damping on the logarithms of the constants. Sets value, origin `measured` and width of each: the
/// standard deviation of the posterior, for errors as large as those that are left.
void fit_constants(Cluster& cluster, const std::vector<FittedConstant>& constants,
                   const std::vector<MeasuredTime>& times);

} // namespace triax::cost
