// SPDX-License-Identifier: Apache-2.0
// Fits of constants to times that are known to come from other values.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cost/constant_fit.hpp"
#include "triax/error.hpp"

namespace triax::cost {
namespace {

/// Transfers of `bytes` with the latency and the bandwidth of a cluster.
MeasuredTime transfer_of(double bytes, double seconds) {
  return {
      seconds,
      [bytes](const Cluster& cluster) { return cluster.step.transfer_s.value + bytes / cluster.node.bandwidth.value; },
      0.1};
}

Cluster with_priors() {
  Cluster out;
  out.step.transfer_s = {1e-4, Origin::prior, 2};
  out.node.bandwidth = {1e9, Origin::prior, 2};
  return out;
}

TEST(ConstantFit, FindsLatencyAndBandwidth) {
  Cluster cluster = with_priors();
  std::vector<MeasuredTime> times;
  for (const double bytes : {4e3, 64e3, 1e6, 4e6, 64e6}) times.push_back(transfer_of(bytes, 2e-5 + bytes / 8e9));
  fit_constants(cluster, {{&cluster.step.transfer_s, 1}, {&cluster.node.bandwidth, 1e13}}, times);
  EXPECT_NEAR(cluster.step.transfer_s.value / 2e-5, 1, 0.01);
  EXPECT_NEAR(cluster.node.bandwidth.value / 8e9, 1, 0.01);
  EXPECT_EQ(cluster.node.bandwidth.origin, Origin::measured);
  EXPECT_LT(cluster.node.bandwidth.width, 0.15); // of times with a width of 0.1
}

TEST(ConstantFit, ScatteredTimesGiveAWiderConstant) {
  const auto width_with = [](double scatter) {
    Cluster cluster = with_priors();
    std::vector<MeasuredTime> times;
    double sign = 1;
    for (const double bytes : {4e6, 8e6, 16e6, 32e6, 64e6}) {
      times.push_back(transfer_of(bytes, bytes / 8e9 * (1 + sign * scatter)));
      sign = -sign;
    }
    fit_constants(cluster, {{&cluster.node.bandwidth, 1e13}}, times);
    return cluster.node.bandwidth.width;
  };
  EXPECT_GT(width_with(0.5), 2 * width_with(0.01));
}

TEST(ConstantFit, WhatNoTimeDependsOnKeepsItsPrior) {
  Cluster cluster = with_priors();
  fit_constants(cluster, {{&cluster.step.transfer_s, 1}, {&cluster.node.bandwidth, 1e13}},
                {{3, [](const Cluster&) { return 3.0; }, 0.1}});
  EXPECT_NEAR(cluster.node.bandwidth.value, 1e9, 1); // rounding
  EXPECT_NEAR(cluster.node.bandwidth.width, 2, 1e-9);
}

TEST(ConstantFit, ValuesStayWithinTheirLimit) {
  Cluster cluster = with_priors();
  fit_constants(cluster, {{&cluster.node.bandwidth, 2e9}}, {transfer_of(1e9, 1e-3)});
  EXPECT_LE(cluster.node.bandwidth.value, 2e9 * (1 + 1e-12));
  EXPECT_GT(cluster.node.bandwidth.value, 1e9);
}

TEST(ConstantFit, AWidthOfZeroIsRefused) {
  Cluster cluster = with_priors();
  const std::vector<FittedConstant> constants = {{&cluster.node.bandwidth, 1e13}};
  MeasuredTime exact = transfer_of(1e9, 1);
  exact.width = 0;
  EXPECT_THROW(fit_constants(cluster, constants, {exact}), Error);
  EXPECT_THROW(fit_constants(cluster, constants, {transfer_of(1e9, 0)}), Error);
  cluster.node.bandwidth.width = 0;
  EXPECT_THROW(fit_constants(cluster, constants, {transfer_of(1e9, 1)}), Error);
}

} // namespace
} // namespace triax::cost
