// SPDX-License-Identifier: Apache-2.0
// The ranks of a tiny run as threads of the test.
//
// Threads: starts one per rank, and joins them. Errors of ranks are failures of the test.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "train/tiny_run.hpp"

namespace triax::test {

struct RankTrace {
  Trace trace;
  std::vector<report::GroupTraffic> traffic;
  double held_out = 0;
  std::map<std::string, std::vector<std::byte>> weights; // by name
};

/// Calls body(rank, index) for each rank, on its thread. Rank `index` trains with the samples of `sources[index]`.
/// `rows`, if given, replace the scheduler's.
template <class Source, class Body>
void run_ranks(const config::RunConfig& config, const Layout& layout, std::vector<Source>& sources, Body body,
               const Schedule* rows = nullptr) {
  control::LocalStore store;
  std::vector<std::string> errors(static_cast<std::size_t>(layout.world_size()));
  std::vector<std::thread> threads;
  for (int index = 0; index < layout.world_size(); ++index)
    threads.emplace_back([&, index] {
      try {
        Source& source = sources[static_cast<std::size_t>(index)];
        train::Rank rank(config, layout, index, store, null_log(),
                         {.training = &source, .held_out = &source, .schedule = rows, .threads = 1});
        body(rank, index);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(index)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}
template <class Body>
void run_ranks(const config::RunConfig& config, const Layout& layout, Body body, const Schedule* rows = nullptr) {
  std::vector<TinySource> sources(static_cast<std::size_t>(layout.world_size()));
  run_ranks(config, layout, sources, body, rows);
}

inline std::vector<RankTrace> train_ranks(const config::RunConfig& config, const Layout& layout, int steps,
                                          const Schedule* rows = nullptr) {
  std::vector<RankTrace> out(static_cast<std::size_t>(layout.world_size()));
  const auto train_one = [&](train::Rank& rank, int index) {
    RankTrace& of = out[static_cast<std::size_t>(index)];
    of = {train(rank, steps), rank.traffic(), rank.evaluate().loss, {}};
    for (const train::RankParameter& parameter : rank.parameters())
      append(of.weights[parameter.name], parameter.master);
  };
  run_ranks(config, layout, train_one, rows);
  return out;
}

inline std::vector<RankTrace> train_ranks(const TinyRun& run, int steps, const Schedule* rows = nullptr) {
  const config::RunConfig config = run.config();
  return train_ranks(config, train::layout_of(config), steps, rows);
}

/// The run's configuration, in which further axes have the communicator of the data axis.
inline config::RunConfig with_axes(const TinyRun& run, const std::vector<std::string>& axes) {
  config::RunConfig config = run.config();
  for (const std::string& axis : axes) config.comm[axis] = config.comm.at("data");
  return config;
}

/// model-divided (plugins/model_divided.cpp), with steps whose numbers are exact.
inline void use_divided_model(TinyRun& run) {
  for (const char* key : {"model.layers", "model.hidden", "model.heads", "model.sequence", "model.dropout"})
    run.keys.erase(key);
  run.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run.keys["model.plugin"] = "\"model-divided\"";
  run.keys["optimizer.plugin"] = "\"optim-sgd\"";
  run.keys["optimizer.lr"] = "0.25";
  run.keys["optimizer.weight_decay"] = "0";
}

/// A layout of 32 ranks with two on each of five axes, "context" and "expert" among them; see with_axes().
inline Layout divide_over_all_axes(TinyRun& run) {
  run.keys["parallel.pipeline"] = run.keys["parallel.tensor"] = "2";
  run.keys["parallel.data"] = "4"; // ranks with different samples
  return Layout({{"tensor", 2, Divides::tensors},
                 {"context", 2, Divides::positions},
                 {"expert", 2, Divides::samples},
                 {"data", 2, Divides::samples},
                 {"pipeline", 2, Divides::layers}});
}

} // namespace triax::test
