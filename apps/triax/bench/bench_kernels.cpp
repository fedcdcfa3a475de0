// SPDX-License-Identifier: Apache-2.0
// triax bench kernels: measures the operations of a kernel set at a model's shapes, or compares two sets.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench_verbs.hpp"
#include "bench/kernel_measure.hpp"
#include "bench/kernels_report.hpp"
#include "bench/side_flags.hpp"
#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/refuse.hpp"
#include "common/verbs.hpp"
#include "os/cpu_quota.hpp"
#include "os/machine.hpp"
#include "triax/precision.hpp"

namespace triax::app {

namespace {

constexpr SideWords kKernelWords = {"kernel set", "KERNELS", KernelSet::kKind, "kernels"};
constexpr long long kMaxSize = 1 << 20; // products of them are checked with the memory that they need

struct KernelsArguments {
  SideFlags sides;
  std::string run; // RUN.toml
  std::optional<std::string> precision;
  std::optional<std::int64_t> hidden, heads, sequence, micro, vocab;
  std::optional<double> dropout;
  std::optional<int> threads;
  bench::KernelPlan plan;
};

DType compute_type(const std::string& precision) {
  return precision == "bf16" ? DType::bf16 : precision == "fp16" ? DType::f16 : DType::f32;
}

/// The shapes of a run; a flag overrides them.
std::vector<config::Diagnostic> read_run(const KernelsArguments& arguments, bench::KernelPlan& plan) {
  std::vector<config::Override> overrides;
  if (arguments.vocab) overrides.push_back({"model.vocab", triax::to_text(*arguments.vocab), "--vocab"});
  const config::LoadResult loaded = config::load(arguments.run, overrides, std::nullopt, config::Purpose::plan);
  if (!loaded.run) return loaded.refusals;
  const Options& model = loaded.run->model.options;
  for (const char* key : {"hidden", "heads", "sequence", "dropout"})
    if (!model.has(key))
      return {config::diagnose(make_refusal(ErrorCode::kUnsupported, {"model.plugin"},
                                            "model.plugin \"{}\" has no option \"{}\"", loaded.run->model.name, key)
                                   .with_hint("leave RUN.toml out, and give the shapes as flags"),
                               loaded.values)};
  plan.shapes = {model.integer("hidden"), model.integer("heads"), model.integer("sequence"),
                 loaded.run->batch.micro, loaded.run->vocab,      model.number("dropout")};
  plan.compute = loaded.run->train.compute;
  return {};
}

void read_flags(const KernelsArguments& arguments, bench::KernelPlan& plan) {
  bench::GptShapes& shapes = plan.shapes;
  shapes.hidden = arguments.hidden.value_or(shapes.hidden);
  shapes.heads = arguments.heads.value_or(shapes.heads);
  shapes.sequence = arguments.sequence.value_or(shapes.sequence);
  shapes.micro = arguments.micro.value_or(shapes.micro);
  shapes.vocab = arguments.vocab.value_or(shapes.vocab);
  shapes.dropout = arguments.dropout.value_or(shapes.dropout);
  if (arguments.precision) plan.compute = compute_type(*arguments.precision);
  plan.threads = arguments.threads.value_or(os::available_cores());
  plan.rounds = arguments.sides.rounds;
  plan.turn_s = arguments.sides.turn_ms * 1e-3;
}

int bench_kernels(const KernelsArguments& arguments) {
  bench::KernelPlan plan = arguments.plan;
  std::vector<config::Diagnostic> errors;
  if (!arguments.run.empty()) errors = read_run(arguments, plan);
  read_flags(arguments, plan);
  plan.may_be_equal = arguments.sides.same;
  Refusals refusals;
  plan.sides = load_sides(arguments.sides, kKernelWords, plugin::FirstLoad::probed, refusals);
  if (errors.empty() && refusals.empty()) refusals.add(bench::check(plan, os::this_machine().free_bytes));
  if (errors.empty() && refusals.empty()) check_output(arguments.sides.output, refusals);
  for (const config::Diagnostic& error : diagnostics_of(refusals)) errors.push_back(error);
  if (!errors.empty()) return refuse(errors, arguments.sides.json);
  try {
    bench::KernelMeasurement measurement(plan);
    KernelsReport report(plan, measurement, arguments.sides);
    report.begin();
    measurement.run([&report](const bench::KernelResult& result) { report.add(result); });
    return report.end();
  } catch (const Error& error) {
    print_problem(error.what(), arguments.sides.json);
    return kFailed;
  }
}

void add_shape_flags(CLI::App& verb, KernelsArguments& arguments) {
  const auto size = [&verb](const char* flag, auto& value, const char* doc) {
    verb.add_option(flag, value, doc)->type_name("N")->check(integer_in(1, kMaxSize));
  };
  size("--hidden", arguments.hidden, "width of the residual stream [256]");
  size("--heads", arguments.heads, "attention heads [4]");
  size("--sequence", arguments.sequence, "tokens of a sample [256]");
  size("--micro", arguments.micro, "samples of a microbatch [1]");
  size("--vocab", arguments.vocab, "tokens of the vocabulary [1024]");
  verb.add_option("--dropout", arguments.dropout, "dropout rate [0.1]")->type_name("RATE")->check(number_in(0, 0.99));
  verb.add_option("--precision", arguments.precision, "as train.precision [fp32]")
      ->check(one_of({"fp32", "bf16", "fp16"}));
  size("--product", arguments.plan.product, "n of the product of n x n that gives the rate of arithmetic [1024]");
  size("--copied-mib", arguments.plan.copied_mib, "MiB of the copy that gives the memory bandwidth [64]");
}

} // namespace

void add_bench_kernels(CLI::App& bench, int& status) {
  CLI::App* const verb = bench.add_subcommand("kernels", "measures the operations of a kernel set, or compares two");
  const auto arguments = std::make_shared<KernelsArguments>();
  verb->add_option("RUN.toml", arguments->run, "the run whose model gives the shapes; flags override them");
  add_side_flags(*verb, arguments->sides, kKernelWords);
  repeated(
      verb->add_option("--op", arguments->plan.names, "only this operation; may be repeated [all]")->type_name("NAME"));
  verb->add_option("--threads", arguments->threads, "CPU threads that a kernel set may use [all cores]")
      ->type_name("N")
      ->check(integer_in(1, 1024));
  add_shape_flags(*verb, *arguments);
  verb->callback([arguments, &status] { status = bench_kernels(*arguments); });
}

} // namespace triax::app
