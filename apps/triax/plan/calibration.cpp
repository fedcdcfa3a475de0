// SPDX-License-Identifier: Apache-2.0
#include "plan/calibration.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "bench/gpt_operations.hpp"
#include "common/errors_out.hpp"
#include "common/output_flag.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/table.hpp"
#include "common/verbs.hpp"
#include "cost/cluster_file.hpp"
#include "cost/cluster_text.hpp"
#include "cost/code_traits.hpp"
#include "cost/collective_cost.hpp"
#include "cost/constant_fit.hpp"
#include "cost/default_cluster.hpp"
#include "cost/operation_cost.hpp"
#include "os/machine.hpp"
#include "os/stop_signals.hpp"
#include "os/temporary_folder.hpp"
#include "plan/profile_check.hpp"
#include "plugin/option_text.hpp"
#include "report/units.hpp"
#include "triax/error.hpp"
#include "triax/precision.hpp"
#include "triax/rank_activity.hpp"

namespace triax::app {

namespace {

using CalibrationJson = nlohmann::ordered_json;
using cost::Cluster;
using cost::Constant;
using cost::Origin;

constexpr int kMicro = 2;
constexpr std::int64_t kVocab = 512;
constexpr const char* kMeasuredCollectives[] = {"all_reduce", "all_gather", "reduce_scatter"};
constexpr const char* kTransfers = "exchange";
// Standard deviation of the relative model error: operation, collective, step.
constexpr double kOperationWidth = 0.3, kCollectiveWidth = 0.3, kStepWidth = 0.1;

Constant prior(double value, double width) {
  return {value, Origin::prior, width};
}

/// A cluster with the constants that cannot be measured on one machine, and the priors of the others.
Cluster prior_cluster(const os::Machine& machine) {
  Cluster out = cost::default_cluster(DeviceKind::host);
  out.name = machine.processor;
  out.device.name = "a core of " + machine.processor;
  out.device.memory_bytes = {static_cast<double>(machine.free_bytes) / machine.cores, Origin::measured, 0};
  out.node.devices = machine.cores;
  return out;
}

/// Options of a plugin by name, as TOML text. Those that are not set have their defaults.
std::map<std::string, std::string> options_of(const config::PluginChoice& plugin) {
  std::map<std::string, std::string> out;
  for (const triax_option& option : plugin.library->options)
    if (plugin.options.has(option.name)) out[option.name] = plugin::to_toml(plugin.options.value(option.name));
  return out;
}

class Calibration {
 public:
  Calibration(const CalibrationArguments& arguments, const config::LoadResult& loaded, const os::StopSignals& signals,
              const std::filesystem::path& folder)
      : sizes_(arguments.sizes),
        loaded_(loaded),
        run_(*loaded.run),
        machine_(os::this_machine()),
        folder_(folder),
        steps_(calibration_steps(machine_.cores)),
        programs_(signals, static_cast<int>(2 + std::size(kMeasuredCollectives) + 1 + steps_.size())),
        cluster_(prior_cluster(machine_)) {}

  void run() {
    measure_operations();
    for (const char* const name : kMeasuredCollectives) measure_collective(name);
    measure_transfers();
    measure_steps();
    fit();
    programs_.throw_if_stopped();
  }

  const Cluster& cluster() const { return cluster_; }
  const std::vector<CalibrationStep>& steps() const { return steps_; }

 private:
  /// The fit calls `predict` hundreds of times, and ends at a stop signal.
  void add_time(double seconds, double width, std::function<double(const Cluster&)> predict) {
    times_.push_back({seconds,
                      [this, predict = std::move(predict)](const Cluster& cluster) {
                        programs_.throw_if_stopped();
                        return predict(cluster);
                      },
                      width});
  }

  /// Calls `read` with the result of triax bench. `table`: TOML table of the plugin's options, as --set names it.
  void bench(const std::string& what, std::vector<std::string> arguments, const std::string& table,
             const config::PluginChoice& plugin, const std::function<void(const CalibrationJson&)>& read) {
    const std::filesystem::path file = folder_ / "bench.json";
    arguments.insert(arguments.begin(), "bench");
    arguments.insert(arguments.end(), {"--plugin", plugin.library->file.string(), "--rounds", "5", "--turn-ms", "5",
                                       "--output", file.string()});
    for (const auto& [name, value] : options_of(plugin))
      if (table != "kernels" || name != "threads") // --threads sets it
        arguments.insert(arguments.end(), {"--set", text("{}.{}={}", table, name, value)});
    programs_.run(what, arguments);
    try {
      std::ifstream in(file);
      read(CalibrationJson::parse(in));
    } catch (const CalibrationJson::exception& error) {
      throw Error(text("cannot parse the triax bench result of {}: {}", what, error.what()), file.string(),
                  "check that its folder has free space, or set TMPDIR to another folder, and measure again");
    }
  }

  void measure_operations() {
    std::map<std::string, double> seconds;
    bench("operations",
          {"kernels", "--hidden", text("{}", sizes_.hidden), "--heads", text("{}", sizes_.heads), "--sequence",
           text("{}", sizes_.sequence), "--micro", text("{}", kMicro), "--vocab", text("{}", kVocab), "--precision",
           std::string(precision_name(run_.train.compute)), "--threads", "1", "--product",
           text("{}", 2 * sizes_.hidden), "--copied-mib", "8"},
          "kernels", run_.kernels, [&](const CalibrationJson& all) { seconds = read_operations(all); });
    side_ = std::make_unique<bench::KernelSide>(run_.kernels, 1);
    operations_ = std::make_unique<bench::GptOperations>(
        *side_, bench::GptShapes{sizes_.hidden, sizes_.heads, sizes_.sequence, kMicro, kVocab, 0.1}, run_.train.compute,
        std::vector<std::string>{});
    for (const bench::KernelCase& of : operations_->cases()) {
      if (!seconds.contains(of.name)) continue;
      const OpCall* const call = &of.call;
      add_time(seconds.at(of.name), kOperationWidth, [call, code = *cost::code_named("triax")](const Cluster& cluster) {
        return cost::OperationCost(cluster.device, code).of(*call).seconds;
      });
    }
  }

  /// Sets the largest rates. Returns seconds by name.
  std::map<std::string, double> read_operations(const CalibrationJson& all) {
    const CalibrationJson& side = all.at("sides").at(0);
    double flops = 1e12 * side.at("product_tflop_s").get<double>(), bytes = 1e9 * side.at("copy_gb_s").get<double>();
    std::map<std::string, double> seconds;
    for (const CalibrationJson& of : all.at("operations")) {
      const double mean_s = 1e-6 * of.at("sides").at(0).at("mean_us").get<double>();
      seconds[of.at("name").get<std::string>()] = mean_s;
      const bool computes = of.at("flops").get<double>() > 0;
      (computes ? flops : bytes) =
          std::max(computes ? flops : bytes, of.at(computes ? "flops" : "bytes").get<double>() / mean_s);
    }
    // The maximum over all operations, so that efficiencies are at most 1.
    constexpr double kRateWidth = 0.05;
    const bool is_16bit = bytes_of(run_.train.compute) == 2;
    cost::DeviceCosts& device = cluster_.device;
    (is_16bit ? device.peak_16bit : device.peak_32bit) = {flops, Origin::measured, kRateWidth};
    (is_16bit ? device.peak_32bit : device.peak_16bit) = prior(flops, 1);
    device.memory_bandwidth = {bytes, Origin::measured, kRateWidth};
    return seconds;
  }

  /// Seconds by bytes.
  std::vector<std::pair<double, double>> measured_sizes(const std::string& operation) {
    std::vector<std::pair<double, double>> out;
    bench(operation, {"comm", "--op", operation, "--ranks", "2", "--sizes", "4K,64K,1M,4M"}, "comm", comm(),
          [&out](const CalibrationJson& all) {
            for (const CalibrationJson& of : all.at("sizes"))
              out.emplace_back(of.at("bytes").get<double>(), 1e-6 * of.at("sides").at(0).at("mean_us").get<double>());
          });
    return out;
  }
  const config::PluginChoice& comm() const { return run_.comm.at(std::string(kTensorAxis)); }

  void measure_collective(const std::string& name) {
    const auto kind = name == "all_reduce"   ? Collective::Kind::all_reduce
                      : name == "all_gather" ? Collective::Kind::all_gather
                                             : Collective::Kind::reduce_scatter;
    for (const auto& measured : measured_sizes(name)) {
      // bench reports the bytes of the output; the cost model takes those of one rank's input.
      const double bytes = kind == Collective::Kind::all_gather ? measured.first / 2 : measured.first;
      add_time(measured.second, kCollectiveWidth, [kind, bytes](const Cluster& cluster) {
        return cost::CollectiveCost(cluster).seconds(kind, bytes, cost::GroupShape{2, 1, 1});
      });
    }
  }

  void measure_transfers() {
    for (const auto& measured : measured_sizes(kTransfers))
      add_time(measured.second, kCollectiveWidth, [bytes = measured.first](const Cluster& cluster) {
        return cluster.step.transfer_s.value + bytes / cost::CollectiveCost(cluster).link_bandwidth(false);
      });
  }

  void measure_steps() {
    std::ofstream words(folder_ / "words.txt");
    constexpr int kWords = 20000;
    for (int word = 0; word < kWords; ++word) words << "word " << word << '\n';
    words.close();
    programs_.run("tokens", {"data", "prepare", "--input", (folder_ / "words.txt").string(), "--output",
                             (folder_ / "corpus").string(), "--tokenizer", "byte"});
    const std::string plugins = plugin_tables(loaded_);
    for (CalibrationStep& step : steps_) {
      measure_step(step, sizes_, plugins, folder_, programs_);
      add_time(step.measured_s, kStepWidth,
               [of = &step](const Cluster& cluster) { return predict_step_s(*of, cluster); });
    }
  }

  void fit() {
    cost::DeviceCosts& device = cluster_.device;
    const std::set<const Constant*> fitted = {&device.gemm_efficiency,
                                              &device.bandwidth_efficiency,
                                              &device.narrow_head,
                                              &device.fill,
                                              &device.launch_s,
                                              &cluster_.node.bandwidth,
                                              &cluster_.collectives.launch_s,
                                              &cluster_.step.transfer_s,
                                              &cluster_.step.fixed_s};
    std::vector<cost::FittedConstant> constants;
    for (const cost::NamedConstant& of : cost::named_constants(cluster_))
      if (fitted.contains(of.constant)) constants.push_back({of.constant, of.most});
    cost::fit_constants(cluster_, constants, times_);
    cluster_.node.nic_bandwidth = prior(cluster_.node.bandwidth.value, 1); // there is one node
    cluster_.profile = {.processor = machine_.processor,
                        .cores = machine_.cores,
                        .precision = std::string(precision_name(run_.train.compute)),
                        .kernels = {run_.kernels.name, build_of(run_.kernels.library->file)},
                        .comm = {comm().name, build_of(comm().library->file)}};
  }

  const CalibrationSizes sizes_;
  const config::LoadResult& loaded_;
  const config::RunConfig& run_;
  const os::Machine machine_;
  const std::filesystem::path& folder_;
  std::vector<CalibrationStep> steps_;
  CalibrationPrograms programs_;
  Cluster cluster_;
  std::unique_ptr<bench::KernelSide> side_;
  std::unique_ptr<bench::GptOperations> operations_; // whose calls are predicted
  std::vector<cost::MeasuredTime> times_;
};

/// True if the file does not exist, or a calibration wrote it.
bool can_replace(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return true;
  const cost::ClusterFile read = cost::read_cluster(file);
  return read.cluster && read.cluster->profile;
}

/// Refuses axes with different communicators: a cluster file has the constants of one.
Refusals check_axes(const config::RunConfig& run) {
  const config::PluginChoice& tensor = run.comm.at(std::string(kTensorAxis));
  for (const auto& [axis, choice] : run.comm) {
    const std::string key = choice.named_in + ".plugin";
    const char* const hint =
        "use one for all axes: remove [comm.tensor], [comm.pipeline] and [comm.data], and set [comm]";
    if (choice.name != tensor.name || !choice.library)
      return make_refusal(ErrorCode::kUnsupported, {key, tensor.named_in + ".plugin"},
                          "--calibrate measures one communicator, but the run has {}.plugin = \"{}\" and {} = \"{}\"",
                          tensor.named_in, tensor.name, key, choice.name)
          .with_hint("{}", hint);
    if (options_of(choice) != options_of(tensor))
      return make_refusal(ErrorCode::kUnsupported, {choice.table, tensor.table},
                          "--calibrate measures one communicator, but [{}] and [{}] have different options of {}",
                          choice.table, tensor.table, choice.name)
          .with_hint("{}", hint);
  }
  return {};
}

Refusals check_calibration(const CalibrationArguments& arguments, const config::RunConfig& run) {
  Refusals out;
  if (const std::string wrong = output_file_error(arguments.output); !wrong.empty())
    out.add(make_refusal(ErrorCode::kNotWritable, {"--calibrate"}, "--calibrate: {}", wrong)
                .with_hint("name a file in a folder that exists and that you can write to"));
  else if (!can_replace(arguments.output))
    out.add(make_refusal(ErrorCode::kConflict, {"--calibrate"}, "--calibrate: {} exists and has no [profile]",
                         arguments.output)
                .with_hint("name another file, or remove this one"));
  for (const auto& [key, choice] :
       {std::pair("kernels.plugin", &run.kernels), std::pair("comm.plugin", &run.comm.at(std::string(kTensorAxis)))})
    if (!choice->library)
      out.add(make_refusal(ErrorCode::kUnknownPlugin, {key},
                           "{} = \"{}\" is not installed here, but --calibrate measures it", key, choice->name)
                  .with_hint("name an installed plugin, such as --set {}={}", key,
                             key == std::string("comm.plugin") ? "comm-local" : "kernels-cpu"));
  const DType type = run.train.compute;
  if (type == DType::f64)
    out.add(make_refusal(ErrorCode::kUnsupported, {"train.precision"},
                         "--calibrate measures fp32, bf16 and fp16, not {}", precision_name(type))
                .with_hint("use --set train.precision=fp32"));
  if (!out.empty()) return out;
  out = check_axes(run);
  bench::KernelSide side(run.kernels, 1);
  if (!side.kernels().computes())
    out.add(make_refusal(ErrorCode::kUnsupported, {"kernels.plugin"},
                         "--calibrate measures kernel sets, but {} does not compute", run.kernels.name)
                .with_hint("name a kernel set that computes, such as --set kernels.plugin=kernels-cpu"));
  else if (side.device().kind() != DeviceKind::host)
    out.add(make_refusal(ErrorCode::kUnsupported, {"kernels.plugin"},
                         "--calibrate measures kernel sets on the host, but {} computes on {}", run.kernels.name,
                         side.device().description())
                .with_hint("fit a file of clusters/ to measured steps: scripts/fit-cluster"));
  return out;
}

std::string milliseconds_text(double seconds) {
  char out[32];
  std::snprintf(out, sizeof out, "%.4g ms", 1e3 * seconds);
  return out;
}

std::string calibration_text(const CalibrationArguments& arguments, const Calibration& of) {
  std::vector<std::vector<std::string>> rows = {{"steps", "measured", "predicted", "error"}};
  for (const CalibrationStep& step : of.steps()) {
    const double predicted = predict_step_s(step, of.cluster());
    rows.push_back({step.name, milliseconds_text(step.measured_s), milliseconds_text(predicted),
                    report::percent_text(predicted / step.measured_s - 1)});
  }
  return table(std::move(rows)) + text("wrote {}\n", arguments.output);
}

std::string calibration_json(const CalibrationArguments& arguments, const Calibration& of) {
  CalibrationJson steps = CalibrationJson::array();
  for (const CalibrationStep& step : of.steps())
    steps.push_back(
        {{"steps", step.name}, {"measured_s", step.measured_s}, {"predicted_s", predict_step_s(step, of.cluster())}});
  return CalibrationJson{{"file", arguments.output}, {"steps", std::move(steps)}}.dump(
             2, ' ', false, CalibrationJson::error_handler_t::replace) +
         "\n";
}

} // namespace

int calibrate(const CalibrationArguments& arguments) {
  RankActivity activity;
  const RankActivity::Binding bound(activity);
  const config::LoadResult loaded = config::load(arguments.run, arguments.overrides, {}, config::Purpose::plan);
  if (!loaded.run) return refuse(loaded.refusals, arguments.json);
  if (const Refusals refusals = check_calibration(arguments, *loaded.run); !refusals.empty())
    return refuse(refusals, arguments.json);
  const os::TemporaryFolder folder("triax-calibrate-");
  const os::StopSignals signals;
  Calibration calibration(arguments, loaded, signals, folder.path());
  try {
    calibration.run();
  } catch (const Interrupted& stop) {
    print_problem(text("interrupted: {} is not written", arguments.output), arguments.json);
    return 128 + stop.signal;
  } catch (const Error& error) {
    print_problem(error.what(), arguments.json);
    return kFailed;
  }
  write_output("# SPDX-License-Identifier: Apache-2.0\n# Measured by triax plan --calibrate.\n" +
                   cost::to_toml(calibration.cluster()),
               arguments.output);
  result_out() << (arguments.json ? calibration_json(arguments, calibration)
                                  : calibration_text(arguments, calibration));
  return kDone;
}

} // namespace triax::app
