// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/scaled_text.hpp"
#include "bench/bench_text.hpp"
#include "common/machine_text.hpp"
#include "common/printable_line.hpp"
#include "common/ratio_json.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "triax/precision.hpp"
#include "triax/version.h"

namespace triax::app {

namespace {

constexpr std::size_t kNameWidth = 28;

std::string name_cell(std::string name) {
  name.resize(std::max(name.size(), kNameWidth), ' ');
  return name;
}

/// "3e-07"
std::string scientific_text(double value) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.0e", value);
  return out.data();
}

/// "GFLOP/s" of an operation with arithmetic, else "GB/s".
std::string rate_text(const bench::KernelResult& result, double seconds) {
  const bool computes = result.flops > 0;
  return three_digits(1e-9 * (computes ? result.flops : result.bytes) / seconds) + (computes ? " GFLOP/s" : " GB/s");
}

} // namespace

KernelsReport::KernelsReport(const bench::KernelPlan& plan, const bench::KernelMeasurement& measurement,
                             const SideFlags& flags)
    : plan_(plan), measurement_(measurement), flags_(flags) {}

/// Share of the roofline that the side reaches.
double KernelsReport::roofline(const bench::KernelResult& result, std::size_t side) const {
  return bench::roofline_s(result, measurement_.rates()[side]) / bench::mean_s(result.sides[side]);
}

void KernelsReport::begin() {
  if (flags_.json) return;
  const bench::GptShapes& shapes = plan_.shapes;
  std::string out =
      text("operations of a GPT in {}: hidden {}, heads {}, sequence {}, micro {}, vocab {}, dropout {}\n",
           precision_name(plan_.compute), shapes.hidden, shapes.heads, shapes.sequence, shapes.micro, shapes.vocab,
           shapes.dropout);
  out += machine_line() + '\n';
  for (std::size_t side = 0; side < plan_.sides.size(); ++side)
    out += side_line(compares() ? (side == 0 ? "A" : "B") : "plugin", plan_.sides[side]) + '\n';
  const bool one_kind = !compares() || measurement_.have_equal_rates();
  for (std::size_t side = 0; side < (one_kind ? 1 : plan_.sides.size()); ++side)
    out += device_line(one_kind ? "device" : side == 0 ? "device A" : "device B", side);
  out += text("timing   {} {} of at least {} ms, at most {} CPU thread{}\n\n", plan_.rounds,
              compares() ? "rounds A B B A, turns" : "turns", three_digits(1e3 * plan_.turn_s), plan_.threads,
              plan_.threads == 1 ? "" : "s");
  out += name_cell("operation");
  if (compares()) {
    out += cell("A us") + cell("A roof", 8) + cell("B us") + cell("B roof", 8) + ratio_heading() + cell("differ");
  } else {
    out += cell("us") + cell("rate", 15) + cell("roofline");
  }
  result_out() << out << '\n';
  result_out().flush();
}

std::string KernelsReport::device_line(const std::string& label, std::size_t side) const {
  const bench::DeviceRates& rates = measurement_.rates()[side];
  return printable_line(text("{}{}; product of {}: {} GFLOP/s, copy of {} MiB: {} GB/s",
                             label + std::string(9 - label.size(), ' '), measurement_.device(side), plan_.product,
                             three_digits(1e-9 * rates.flops), plan_.copied_mib, three_digits(1e-9 * rates.bytes))) +
         '\n';
}

std::string KernelsReport::side_cells(const bench::KernelResult& result, std::size_t side) const {
  const double seconds = bench::mean_s(result.sides[side]);
  const std::string share = decimals_text(100 * roofline(result, side), 0) + " %";
  if (compares()) return cell(microseconds(seconds)) + cell(share, 8);
  return cell(microseconds(seconds)) + cell(rate_text(result, seconds), 15) + cell(share);
}

void KernelsReport::add(const bench::KernelResult& result) {
  results_.push_back(result);
  if (flags_.json) return;
  std::string out = name_cell(result.name);
  for (std::size_t side = 0; side < result.sides.size(); ++side) out += side_cells(result, side);
  if (compares()) {
    const std::string differ = result.difference == 0 ? "0" : scientific_text(result.difference);
    out += ratio_cells(bench::ratio_of(result)) + cell(differ);
  }
  result_out() << out << '\n';
  result_out().flush();
}

int KernelsReport::end() const {
  if (!flags_.json) {
    result_out()
        << "\nroof: least time for the arithmetic (of attention: of visible scores), or for the bytes read and "
           "written, at the rates of product and copy, divided by the time.\n";
    if (compares()) result_out() << kRatioLegend << "\ndiffer: largest difference of the results / largest value.\n";
  }
  return write_result(flags_, json());
}

std::string KernelsReport::json() const {
  using Json = nlohmann::ordered_json;
  Json sides = Json::array(), operations = Json::array();
  for (std::size_t side = 0; side < plan_.sides.size(); ++side) {
    Json one = side_json(plan_.sides[side]);
    one["device"] = measurement_.device(side);
    one["product_tflop_s"] = 1e-12 * measurement_.rates()[side].flops;
    one["copy_gb_s"] = 1e-9 * measurement_.rates()[side].bytes;
    sides.push_back(std::move(one));
  }
  for (const bench::KernelResult& result : results_) {
    Json of_sides = Json::array();
    for (std::size_t side = 0; side < result.sides.size(); ++side)
      of_sides.push_back({{"calls", result.sides[side].calls},
                          {"mean_us", 1e6 * bench::mean_s(result.sides[side])},
                          {"roofline", roofline(result, side)}});
    Json one = {{"name", result.name}, {"flops", result.flops}, {"bytes", result.bytes}, {"sides", of_sides}};
    if (compares()) {
      one["ratio"] = ratio_json(bench::ratio_of(result));
      one["difference"] = result.difference;
    }
    operations.push_back(std::move(one));
  }
  const bench::GptShapes& shapes = plan_.shapes;
  const Json out = {{"triax", TRIAX_VERSION},
                    {"machine", machine_json(os::this_machine())},
                    {"precision", std::string(precision_name(plan_.compute))},
                    {"model",
                     {{"hidden", shapes.hidden},
                      {"heads", shapes.heads},
                      {"sequence", shapes.sequence},
                      {"micro", shapes.micro},
                      {"vocab", shapes.vocab},
                      {"dropout", shapes.dropout}}},
                    {"threads", plan_.threads},
                    {"rounds", plan_.rounds},
                    {"turn_ms", 1e3 * plan_.turn_s},
                    {"sides", sides},
                    {"operations", operations}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace triax::app
