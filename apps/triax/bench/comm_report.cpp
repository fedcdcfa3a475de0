// SPDX-License-Identifier: Apache-2.0
#include "bench/comm_report.hpp"

#include "base/scaled_text.hpp"
#include "bench/bench_text.hpp"
#include "bench/byte_sizes.hpp"
#include "bench/call_times.hpp"
#include "common/machine_text.hpp"
#include "common/ratio_json.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "triax/version.h"

namespace triax::app {

namespace {

constexpr int kSizeWidth = 8;

std::string gigabytes(double bytes_per_s) {
  return decimals_text(1e-9 * bytes_per_s, bytes_per_s < 1e8 ? 4 : 2);
}

} // namespace

CommReport::CommReport(const bench::CommPlan& plan, const bench::RankMode& mode, const SideFlags& flags)
    : plan_(plan), mode_(mode), flags_(flags), overhead_s_(bench::loop_overhead_s()) {}

/// Algorithm bandwidth in bytes per second.
double CommReport::bandwidth(const bench::SizeResult& result, std::size_t side) const {
  return static_cast<double>(result.bytes) / bench::mean_s(result.sides[side]);
}

void CommReport::begin() {
  if (flags_.json) return;
  std::string out = text("{} of {}, {} ranks as {}\n", bench::name_of(plan_.operation), name_of(plan_.dtype),
                         plan_.ranks, mode_.ranks_are_threads ? "threads of one process" : "processes");
  out += machine_line() + '\n';
  for (std::size_t side = 0; side < plan_.sides.size(); ++side)
    out += side_line(compares() ? (side == 0 ? "A" : "B") : "plugin", plan_.sides[side]) + '\n';
  out += text("timing   {} {} of at least {} ms; the measuring loop adds {} us to a call\n\n", plan_.rounds,
              compares() ? "rounds A B B A, turns" : "turns", three_digits(1e3 * plan_.turn_s),
              decimals_text(1e6 * overhead_s_, 3));
  std::string heading = cell("size", kSizeWidth);
  if (compares()) {
    for (const char* column : {"A us", "A algbw", "A busbw", "B us", "B algbw", "B busbw"}) heading += cell(column);
    heading += ratio_heading();
  } else {
    for (const char* column : {"mean us", "min us", "p50 us", "p99 us", "algbw", "busbw", "calls"})
      heading += cell(column);
  }
  result_out() << out << heading << '\n';
  result_out().flush();
}

std::string CommReport::row_of_one(const bench::SizeResult& result) const {
  const bench::SideTimes& times = result.sides.front();
  const double algorithm = bandwidth(result, 0);
  std::string out;
  for (const double seconds : {bench::mean_s(times), times.min_s, times.p50_s, times.p99_s})
    out += cell(microseconds(seconds));
  out += cell(gigabytes(algorithm)) + cell(gigabytes(algorithm * bench::bus_factor(plan_.operation, plan_.ranks)));
  return out + cell(triax::to_text(times.calls));
}

std::string CommReport::row_of_two(const bench::SizeResult& result) const {
  std::string out;
  for (std::size_t side = 0; side < 2; ++side) {
    const double algorithm = bandwidth(result, side);
    out += cell(microseconds(bench::mean_s(result.sides[side]))) + cell(gigabytes(algorithm)) +
           cell(gigabytes(algorithm * bench::bus_factor(plan_.operation, plan_.ranks)));
  }
  return out + ratio_cells(bench::ratio_of(result));
}

void CommReport::add(const bench::SizeResult& result) {
  results_.push_back(result);
  if (flags_.json) return;
  result_out() << cell(bench::bytes_text(result.bytes), kSizeWidth)
               << (compares() ? row_of_two(result) : row_of_one(result)) << '\n';
  result_out().flush();
}

int CommReport::end() const {
  if (!flags_.json) {
    result_out() << (plan_.operation == bench::CommOperation::send ? "\nTimes are of one message. " : "\n")
                 << "A call takes as long as on its slowest rank. Bandwidths are in GB/s (10^9 bytes). All results "
                    "were correct.\n";
    if (compares()) result_out() << kRatioLegend << '\n';
  }
  return write_result(flags_, json());
}

std::string CommReport::json() const {
  using Json = nlohmann::ordered_json;
  Json sides = Json::array(), sizes = Json::array();
  for (const bench::Side& side : plan_.sides) sides.push_back(side_json(side));
  for (const bench::SizeResult& result : results_) {
    Json of_sides = Json::array();
    for (std::size_t side = 0; side < result.sides.size(); ++side) {
      const bench::SideTimes& times = result.sides[side];
      const double algorithm = 1e-9 * bandwidth(result, side);
      of_sides.push_back({{"calls", times.calls},
                          {"mean_us", 1e6 * bench::mean_s(times)},
                          {"min_us", 1e6 * times.min_s},
                          {"p50_us", 1e6 * times.p50_s},
                          {"p99_us", 1e6 * times.p99_s},
                          {"algbw_gb_s", algorithm},
                          {"busbw_gb_s", algorithm * bench::bus_factor(plan_.operation, plan_.ranks)}});
    }
    Json size = {{"bytes", result.bytes}, {"sides", of_sides}};
    if (compares()) {
      const compare::Ratio ratio = bench::ratio_of(result);
      size["ratio"] = ratio_json(ratio);
    }
    sizes.push_back(std::move(size));
  }
  const Json out = {{"triax", TRIAX_VERSION},
                    {"machine", machine_json(os::this_machine())},
                    {"op", bench::name_of(plan_.operation)},
                    {"dtype", std::string(name_of(plan_.dtype))},
                    {"window", plan_.operation == bench::CommOperation::send ? Json(plan_.window) : Json()},
                    {"ranks", plan_.ranks},
                    {"ranks_are_threads", mode_.ranks_are_threads},
                    {"rounds", plan_.rounds},
                    {"turn_ms", 1e3 * plan_.turn_s},
                    {"loop_overhead_us", 1e6 * overhead_s_},
                    {"sides", sides},
                    {"sizes", sizes}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace triax::app
