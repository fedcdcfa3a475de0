// SPDX-License-Identifier: Apache-2.0
// Loads, creates and uses one scheduler, and prints the results: exceptions and objects across the plugin ABI.
#include <iostream>

#include "plugin/loader.hpp"
#include "triax/scheduler.hpp"

int main(int argc, char** argv) {
  using namespace triax;
  if (argc != 2) return 2;
  try {
    const plugin::Library& library = plugin::load(argv[1], "scheduler");
    Options options;
    options.set("steps", std::int64_t{5});
    const Layout layout = Layout::ptd(2, 1, 1);
    const auto scheduler = plugin::create<Scheduler>(library, PluginContext{options, null_log(), layout, 1});
    std::cout << library.descriptor->name << ": " << scheduler->supports({}).front().message << '\n';
    std::cout << scheduler->rows({2, 1, 4}).ranks() << " rows\n";
  } catch (const Error& error) {
    std::cout << "Error: " << error.what() << '\n';
  }
  return 0;
}
