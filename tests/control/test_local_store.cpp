// SPDX-License-Identifier: Apache-2.0
// The in-process store of ranks that are threads.
#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "control/job_local_store.hpp"
#include "triax/error.hpp"

namespace triax::control {
namespace {

TEST(LocalStore, GetsTheLastValueSet) {
  LocalStore store;
  store.set("a", std::string_view("x\0y", 3));
  EXPECT_EQ(store.get("a", deadline_in(0)), std::string("x\0y", 3));
  store.set("a", "later");
  EXPECT_EQ(store.get("a", deadline_in(0)), "later");
}

TEST(LocalStore, GetWaitsForTheKey) {
  LocalStore store;
  std::string got;
  std::thread reading([&] { got = store.get("address", deadline_in(60)); });
  store.set("other", "1");
  store.set("address", "here");
  reading.join();
  EXPECT_EQ(got, "here");
}

TEST(LocalStore, TheDeadlineNamesTheKey) {
  LocalStore store;
  try {
    store.get("tensor.0/hub", deadline_in(0.01));
    FAIL() << "it found what nobody set";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "timed out waiting for key \"tensor.0/hub\"");
  }
}

TEST(LocalStore, AbortEndsWaitsNowAndLater) {
  LocalStore store;
  store.set("there", "1");
  std::string message;
  std::thread reading([&] {
    try {
      store.get("hub", Deadline::max());
    } catch (const Error& error) {
      message = error.what();
    }
  });
  store.abort("rank 1 failed: no memory");
  store.abort("rank 2 failed: another reason");
  reading.join();
  EXPECT_EQ(message, "store, waiting for the key \"hub\": rank 1 failed: no memory");
  EXPECT_THROW(store.get("hub", Deadline::max()), Error);
  EXPECT_EQ(store.get("there", deadline_in(0)), "1");
}

TEST(LocalStore, AddCountsAcrossThreads) {
  LocalStore store;
  EXPECT_EQ(store.add("n", 5), 5);
  EXPECT_EQ(store.add("n", -5), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) store.add("n", 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.add("n", 0), 400);
}

} // namespace
} // namespace triax::control
