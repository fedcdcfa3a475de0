// SPDX-License-Identifier: Apache-2.0
#include "bench/kernel_plan.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/scaled_text.hpp"
#include "plugin/call_guard.hpp"
#include "plugin/did_you_mean.hpp"
#include "plugin/probe_answer.hpp"
#include "plugin/probe_process.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"

namespace triax::bench {

namespace {

void check_names(const KernelPlan& plan, Refusals& out) {
  std::vector<std::string> known = gpt_operation_names();
  for (const std::string& name : gpt_operation_names())
    if (const std::string operation = name.substr(0, name.find('/'));
        std::ranges::find(known, operation) == known.end())
      known.push_back(operation);
  for (const std::string& name : plan.names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::vector<std::string> near = plugin::nearest(name, known);
    std::string all;
    for (const std::string& one : gpt_operation_names()) all += (all.empty() ? "" : ", ") + one;
    out.add(make_refusal(ErrorCode::kInvalidValue, {"--op"}, "--op {} is not an operation of a GPT", name)
                .with_hint("{}", near.empty() ? "use one of " + all : text("did you mean {}?", near.front())));
  }
}

/// Bytes of the buffers with which the rates of one side are measured.
double bytes_of_rates(const KernelPlan& plan) {
  const auto n = static_cast<double>(plan.product);
  const double product = 3 * n * n * static_cast<double>(bytes_of(plan.compute));
  const double copies = 2 * static_cast<double>(plan.copied_mib) * (1 << 20);
  return product + copies;
}

/// Bytes of the buffers of one side.
double bytes_of_side(const KernelPlan& plan) {
  return buffer_bytes(plan.shapes, plan.compute, plan.names) + bytes_of_rates(plan);
}

void refuse_bytes(double needed, const std::string& available, Refusals& out) {
  out.add(make_refusal(ErrorCode::kOutOfMemory, {"--hidden", "--sequence", "--micro", "--vocab"},
                       "the buffers of the operations need {}, but {}", scaled_text(needed, "B"), available)
              .with_hint("use a smaller --hidden, --sequence, --micro, --vocab, --product or --copied-mib, or name "
                         "operations with --op"));
}

/// Refuses sizes that no device has; integers hold the sizes of everything below it.
void check_sizes_of_shapes(const KernelPlan& plan, Refusals& out) {
  constexpr double kMaxBytes = 1e15;
  if (const double needed = bytes_of_side(plan); needed > kMaxBytes)
    refuse_bytes(needed, text("at most {} are allowed", scaled_text(kMaxBytes, "B")), out);
}

/// As JSON: {"on_host", "refusals"}.
nlohmann::json ask_set(const Side& side, const KernelPlan& plan) {
  const config::PluginChoice& choice = side.choice;
  const Layout layout = Layout::ptd(1, 1, 1);
  const auto set = plugin::create<KernelSet>(*choice.library, {choice.options, null_log(), layout, 0, plan.threads});
  Refusals answer = plugin::guarded_call(choice.name, "supports", [&] {
    return set->supports({plan.compute, DType::f32});
  });
  answer.add(plugin::guarded_call(choice.name, "device_available", [&] { return set->device_available({}); }));
  if (!set->computes())
    answer.add(make_refusal(ErrorCode::kUnsupported, {}, "it models the time of operations, but does not compute them")
                   .with_hint("name a kernel set that computes, kernels-cpu for example"));
  return {{"on_host", set->device_kind() == DeviceKind::host}, {"refusals", plugin::refusals_json(answer)}};
}

/// Returns whether the set's device is the host.
bool check_set(const Side& side, const KernelPlan& plan, Refusals& out) {
  const plugin::ProbeResult result =
      plugin::run_probe([&] { return plugin::pack(ask_set(side, plan)); }, plugin::ProbeOutput::inherited);
  const std::string where = text("{} {}", side.flag, side.choice.name);
  if (result.failure) {
    out.add(make_refusal(ErrorCode::kPluginFailed, {side.flag}, "{}: {}", where, result.failure->reason())
                .with_hint("{}", result.failure->hint(side.choice.library->file)));
    return false;
  }
  const nlohmann::json answer = plugin::unpack(result.output);
  for (const Refusal& refusal : plugin::read_refusals(answer.at("refusals")))
    out.add(make_refusal(refusal.code, {side.flag}, "{}: {}", where, refusal.message).with_hint("{}", refusal.hint));
  return answer.at("on_host");
}

} // namespace

Refusals check(const KernelPlan& plan, std::int64_t free_bytes) {
  Refusals out;
  check_names(plan, out);
  if (plan.shapes.hidden % plan.shapes.heads != 0)
    out.add(make_refusal(ErrorCode::kNotDivisible, {"--hidden", "--heads"},
                         "--hidden {} is not divisible by --heads {}", plan.shapes.hidden, plan.shapes.heads));
  check_sizes_of_shapes(plan, out);
  out.add(check_sides(plan.sides, plan.rounds, plan.may_be_equal, "kernels"));
  if (!out.empty()) return out;
  double on_host = 0; // two sides on the host share the buffers of the operations, but not those of the rates
  for (const Side& side : plan.sides)
    if (check_set(side, plan, out)) on_host += on_host == 0 ? bytes_of_side(plan) : bytes_of_rates(plan);
  if (out.empty() && free_bytes > 0 && on_host > static_cast<double>(free_bytes))
    refuse_bytes(on_host, text("this machine has {} of free memory", scaled_text(static_cast<double>(free_bytes), "B")),
                 out);
  return out;
}

double roofline_s(const KernelResult& result, const DeviceRates& rates) {
  return std::max(result.flops / rates.flops, result.bytes / rates.bytes);
}

double mean_s(const KernelTimes& times) {
  return mean_of(times.turns_s);
}

compare::Ratio ratio_of(const KernelResult& result) {
  return ratio_of_turns(result.sides.at(0).turns_s, result.sides.at(1).turns_s);
}

} // namespace triax::bench
