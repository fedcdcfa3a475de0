// SPDX-License-Identifier: Apache-2.0
// Ranks as threads: runs a function on every rank of a layout. Each rank has a device, a stream, communicators through
// comm-local or another backend, loaded kernel sets, and memory that outlives the transports that read it. The device
// need not be the host; then put(), values() and similar functions access its memory.
//
// Threads: run_ranks() starts one thread per rank and joins them all; a Rank is used by its own thread. Ownership: a
// Rank owns what it hands out until its function has returned. Blocking: run_ranks() blocks. A rank that throws aborts
// its groups and interrupts the others, so no rank waits for it; run_ranks() rethrows the first error. For programs
// built with triax_add_test; name the plugins' targets under DEPENDS.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/abort_flag.hpp"
#include "control/job_local_store.hpp"
#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "support/loaded_communicator.hpp"
#include "triax/communicator.hpp"
#include "triax/conformance/rank.hpp"
#include "triax/device.hpp"
#include "triax/kernels.hpp"
#include "triax/model.hpp"

namespace triax::test {

/// The backend of the ranks' communicators; options that are not in `options` have their defaults.
struct Communication {
  std::string plugin = "comm-local"; // name, or file
  Options options;
  /// Create a rank's device and backend, if these are not the host device and a loaded plugin. Called on the rank's
  /// thread.
  std::function<std::unique_ptr<Device>(int rank)> device = {};
  std::function<std::unique_ptr<CommBackend>(const PluginContext& context)> backend = {};
  Log* log = &null_log(); // of all plugins
  /// Called when all ranks have ended.
  std::function<void()> after = {};
};

/// What conformance checks and the ranks below have in common.
inline conformance::RankSetup rank_setup(const Communication& communication) {
  conformance::RankSetup setup;
  setup.options = communication.options;
  setup.device = communication.device;
  setup.log = communication.log;
  setup.timeout_s = 60; // long enough for a loaded machine; a test that reaches it has failed
  if (communication.after) setup.on_all_ended = [after = communication.after](conformance::Report&) { after(); };
  if (communication.backend) {
    setup.backend = [make = communication.backend](const PluginContext& context) {
      return conformance::own<CommBackend>(make(context));
    };
  } else if (!communication.plugin.empty()) {
    setup.backend = loaded_communicator(communication.plugin, setup.options);
  }
  return setup;
}

namespace rank_detail {

/// What the base of Rank refers to.
struct Parts {
  explicit Parts(Communication given) : communication(std::move(given)), setup(setup_of(communication)) {}

  /// The plugin is loaded when its backend is first created: most ranks have none.
  static conformance::RankSetup setup_of(const Communication& given) {
    Communication without = given;
    without.plugin.clear();
    conformance::RankSetup out = rank_setup(without);
    if (out.backend) return out;
    out.backend = [given, loaded = std::make_shared<conformance::RankSetup>()](const PluginContext& context) {
      *loaded = rank_setup(given);
      return loaded->backend({loaded->options, context.log, context.layout, context.rank, context.threads});
    };
    return out;
  }

  const Communication communication;
  const conformance::RankSetup setup;
  conformance::Activities activities;
  conformance::Report report{activities};
};

} // namespace rank_detail

class Rank final : private rank_detail::Parts, public conformance::Rank, public control::JobAbort::Listener {
 public:
  Rank(int index, const Layout& layout, Store& store, Communication given = {})
      : Parts(std::move(given)), conformance::Rank(index, layout, store, setup, report) {}

  static Deadline deadline() { return deadline_in(60); }

  /// This rank's communicators of all axes longer than 1.
  Groups join_axes() {
    Groups groups;
    for (const Axis& axis : layout().axes()) {
      if (axis.size > 1) groups.set(axis.name, &join(axis.name));
    }
    return groups;
  }

  /// A kernel set on this rank's device, such as "kernels-reference".
  KernelSet& kernels(const std::string& name) {
    const plugin::Library& library = plugin::load(plugin_file(name), KernelSet::kKind);
    options_.push_back(std::make_unique<Options>());
    set_defaults(library, *options_.back());
    kernels_.push_back(
        plugin::create<KernelSet>(library, {*options_.back(), *communication.log, layout(), index(), 1}));
    kernels_.back()->start(device());
    return *kernels_.back();
  }

  void abort(std::string_view why) noexcept override { conformance::Rank::abort(why); }

 private:
  std::vector<std::unique_ptr<Options>> options_; // of the kernel sets
  std::vector<plugin::Instance<KernelSet>> kernels_;
};

/// The running ranks of one world, and the first error.
class World {
 public:
  World(const Layout& layout, Communication communication)
      : layout_(layout), communication_(std::move(communication)) {}

  void run(int index, const std::function<void(Rank&)>& body) noexcept {
    std::optional<Rank> rank; // destroyed after its failure is reported: others see that first
    std::optional<control::JobAbort::Listening> listening;
    try {
      rank.emplace(index, layout_, store_, communication_);
      listening.emplace(abort_, *rank);
      body(*rank);
    } catch (const std::exception& error) {
      if (abort_.raise(index, error.what())) first_ = std::current_exception();
    } catch (...) {
      if (abort_.raise(index, "an unknown exception (not derived from std::exception)"))
        first_ = std::current_exception();
    }
  }

  void rethrow() {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  const Layout& layout_;
  const Communication communication_;
  control::JobAbort abort_;
  control::LocalStore store_;
  const control::JobAbort::Listening store_listens_{abort_, store_};
  std::exception_ptr first_; // written by the rank that raised the flag
};

/// Runs `body` on every rank of the layout; rethrows the first error.
inline void run_ranks(const Layout& layout, const std::function<void(Rank&)>& body,
                      const Communication& communication = {}) {
  World world(layout, communication);
  std::vector<std::thread> threads;
  for (int index = 0; index < layout.world_size(); ++index) {
    threads.emplace_back([&, index] { world.run(index, body); });
  }
  for (std::thread& thread : threads) thread.join();
  if (communication.after) communication.after();
  world.rethrow();
}

/// The same for `count` ranks in one tensor group.
inline void run_ranks(int count, const std::function<void(Rank&)>& body, const Communication& communication = {}) {
  run_ranks(Layout::ptd(1, count, 1), body, communication);
}

} // namespace triax::test
