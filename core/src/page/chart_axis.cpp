// SPDX-License-Identifier: Apache-2.0
#include "page/chart_axis.hpp"

#include <algorithm>
#include <cmath>

#include "base/scaled_text.hpp"
#include "triax/error.hpp"

namespace triax::page {

namespace {

constexpr double kRounding = 1e-9; // of a tick's distance

void add_linear_ticks(ChartAxis& axis, const AxisRequest& request) {
  axis.tick_step = nice_step((axis.to - axis.from) / request.max_ticks);
  if (request.is_integer) axis.tick_step = std::max(axis.tick_step, 1.0);
  if (request.fits_ticks) {
    axis.from = std::floor(axis.from / axis.tick_step + kRounding) * axis.tick_step;
    axis.to = std::ceil(axis.to / axis.tick_step - kRounding) * axis.tick_step;
  }
  const double first = std::ceil(axis.from / axis.tick_step - kRounding);
  const double last = std::floor(axis.to / axis.tick_step + kRounding);
  const auto count = static_cast<int>(last - first) + 1;
  for (int i = 0; i < count; ++i) {
    const double at = first + i;
    axis.ticks.push_back(at == 0 ? 0 : at * axis.tick_step);
  }
}

/// Powers of ten, and between them 2 and 5 times these if there are few: three decades can have only two powers within.
void add_log_ticks(ChartAxis& axis, const AxisRequest& request) {
  const double first = std::floor(std::log10(axis.from)), last = std::ceil(std::log10(axis.to));
  const double decades = std::max(1.0, std::ceil((last - first) / request.max_ticks));
  const double powers = std::floor(std::log10(axis.to)) - std::ceil(std::log10(axis.from)) + 1;
  const bool has_few = std::log10(axis.to / axis.from) <= 2.5 || powers < 3;
  const auto count = static_cast<int>((last - first) / decades) + 1;
  for (int i = 0; i < count; ++i)
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = digit * std::pow(10, first + i * decades);
      const bool is_shown = (digit == 1 || has_few) && tick >= axis.from * (1 - kRounding);
      if (is_shown && tick <= axis.to * (1 + kRounding)) axis.ticks.push_back(tick);
    }
  axis.tick_step = axis.ticks.empty() ? 1 : axis.ticks.front();
}

} // namespace

double nice_step(double distance) {
  if (!(distance > 0) || !std::isfinite(distance)) return 1;
  const double power = std::pow(10, std::floor(std::log10(distance)));
  for (const double digit : {1.0, 2.0, 5.0})
    if (distance <= digit * power * (1 + kRounding)) return digit * power;
  return 10 * power;
}

double ChartAxis::part(double value) const {
  return is_log ? std::log(value / from) / std::log(to / from) : (value - from) / (to - from);
}

std::string ChartAxis::label(double tick) const {
  const double largest = std::max(std::abs(from), std::abs(to)), shown = is_log ? tick : tick_step;
  if (tick == 0) return "0";
  if (largest >= 1e4) return scaled_text(tick, "");
  if (largest < 1e-3 || (is_log && std::abs(tick) < 1e-3)) { // "2e-05"
    char out[32];
    std::snprintf(out, sizeof out, "%.3g", tick);
    return out;
  }
  return decimals_text(tick, std::clamp(static_cast<int>(std::ceil(-std::log10(shown) - kRounding)), 0, 9));
}

ChartAxis make_axis(const AxisRequest& request) {
  TRIAX_REQUIRE(std::isfinite(request.min) && std::isfinite(request.max) && request.min <= request.max,
                "an axis cannot reach from {} to {}", request.min, request.max);
  TRIAX_REQUIRE(!request.is_log || request.min > 0, "a logarithmic axis cannot begin at {}", request.min);
  ChartAxis out{request.min, request.max, request.is_log, 1, {}};
  if (request.from_zero) out.from = std::min(out.from, 0.0), out.to = std::max(out.to, 0.0);
  if (out.is_log) {
    const double margin = std::pow(std::max(out.to / out.from, 1.5), 0.04);
    out.from /= margin;
    out.to *= margin;
    add_log_ticks(out, request);
    if (out.ticks.size() >= 3) return out;
    out.ticks.clear(); // less than a decade
  }
  // A range that cannot be divided, such as that of equal values.
  const double size = std::max(std::abs(out.from), std::abs(out.to));
  if (out.to - out.from <= size * 1e-9) {
    const double margin = request.is_integer ? 0.5 : size > 0 ? size * 0.05 : 1;
    out.from -= out.is_log || size > 0 || request.is_integer ? margin : 0;
    out.to += margin;
  }
  AxisRequest linear = request;
  linear.fits_ticks = request.fits_ticks && !out.is_log;
  add_linear_ticks(out, linear);
  return out;
}

} // namespace triax::page
