// SPDX-License-Identifier: Apache-2.0
// Slurm's compressed lists are read as scontrol reads them; invalid ones are refused with a message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/node_list.hpp"
#include "triax/error.hpp"

namespace triax::launch {
namespace {

using testing::ElementsAre;

template <class Parse>
std::string refusal(Parse parse, std::string_view list) {
  try {
    parse(list);
    return "it was read";
  } catch (const Error& error) {
    return error.what();
  }
}
std::string bad_nodes(std::string_view list) {
  return refusal(parse_node_list, list);
}
std::string bad_tasks(std::string_view list) {
  return refusal(parse_tasks_per_node, list);
}

TEST(NodeList, NamesWithoutBrackets) {
  EXPECT_THAT(parse_node_list("n0"), ElementsAre("n0"));
  EXPECT_THAT(parse_node_list("login-1.site,gpu_07"), ElementsAre("login-1.site", "gpu_07"));
}

TEST(NodeList, RangesInOrder) {
  EXPECT_THAT(parse_node_list("n[0-2]"), ElementsAre("n0", "n1", "n2"));
  EXPECT_THAT(parse_node_list("n[5,3,9-11],m1"), ElementsAre("n5", "n3", "n9", "n10", "n11", "m1"));
  EXPECT_THAT(parse_node_list("n[7]"), ElementsAre("n7"));
  EXPECT_THAT(parse_node_list("n[4-4]-ib"), ElementsAre("n4-ib"));
}

TEST(NodeList, ZerosInFrontAreKept) {
  EXPECT_THAT(parse_node_list("gpu[003-005,7]"), ElementsAre("gpu003", "gpu004", "gpu005", "gpu7"));
  EXPECT_THAT(parse_node_list("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(parse_node_list("n[08-10],n00"), ElementsAre("n08", "n09", "n10", "n00"));
}

TEST(NodeList, SeveralBracketsMultiplyTheLastOneFastest) {
  EXPECT_THAT(parse_node_list("r[1-2]n[0-1]"), ElementsAre("r1n0", "r1n1", "r2n0", "r2n1"));
  EXPECT_THAT(parse_node_list("r[01,3][5-6]x"), ElementsAre("r015x", "r016x", "r35x", "r36x"));
}

TEST(NodeList, ClustersOfSlurmsOwnLimit) {
  EXPECT_EQ(parse_node_list("n[0-65535]").back(), "n65535");
  EXPECT_EQ(parse_node_list("r[0-255]n[000-255]").size(), 65536u);
}

TEST(NodeList, InvalidListsAreRefused) {
  EXPECT_EQ(bad_nodes(""), "the node list \"\": it ends, but a node's name is expected");
  EXPECT_EQ(bad_nodes(","), "the node list \",\": found \",\", but a node's name is expected");
  EXPECT_EQ(bad_nodes("n0,"), "the node list \"n0,\": it ends, but a node's name is expected");
  EXPECT_EQ(bad_nodes("n0,,n1"), "the node list \"n0,,n1\": found \",n1\", but a node's name is expected");
  EXPECT_EQ(bad_nodes("n["), "the node list \"n[\": it ends, but a number is expected");
  EXPECT_EQ(bad_nodes("n[]"), "the node list \"n[]\": found \"]\", but a number is expected");
  EXPECT_EQ(bad_nodes("n[0-"), "the node list \"n[0-\": it ends, but a number is expected");
  EXPECT_EQ(bad_nodes("n[0-1"), "the node list \"n[0-1\": it ends, but \"-\", \",\" or \"]\" is expected");
  EXPECT_EQ(bad_nodes("n[0,]"), "the node list \"n[0,]\": found \"]\", but a number is expected");
  EXPECT_EQ(bad_nodes("n[0-1-2]"), "the node list \"n[0-1-2]\": found \"-2]\", but \"-\", \",\" or \"]\" is expected");
  EXPECT_EQ(bad_nodes("n[-1]"), "the node list \"n[-1]\": found \"-1]\", but a number is expected");
  EXPECT_EQ(bad_nodes("n[a-c]"), "the node list \"n[a-c]\": found \"a-c]\", but a number is expected");
  EXPECT_EQ(bad_nodes("n[[0]]"), "the node list \"n[[0]]\": found \"[0]]\", but a number is expected");
  EXPECT_EQ(bad_nodes("n]0"),
            "the node list \"n]0\": found \"]0\", but a letter of a name, \"[\" or \",\" is expected");
  EXPECT_EQ(bad_nodes("n0 n1"),
            "the node list \"n0 n1\": found \" n1\", but a letter of a name, \"[\" or \",\" is expected");
  EXPECT_EQ(bad_nodes("n[3-1]"), "the node list \"n[3-1]\": the range 3-1 is descending");
}

TEST(NodeList, MoreThanAnyClusterHasIsRefusedBeforeItIsMade) {
  EXPECT_EQ(bad_nodes("n[0-1000000000]"), "the node list \"n[0-1000000000]\": more than 65536 nodes");
  EXPECT_EQ(bad_nodes("n[0-65535,7]"), "the node list \"n[0-65535,7]\": more than 65536 nodes");
  EXPECT_EQ(bad_nodes("n[0-65535],m"), "the node list \"n[0-65535],m\": more than 65536 nodes");
  EXPECT_EQ(bad_nodes("n[0-65535][0-1]"), "the node list \"n[0-65535][0-1]\": more than 65536 nodes");
  EXPECT_EQ(bad_nodes("n[0-18446744073709551615]"),
            "the node list \"n[0-18446744073709551615]\": more than 65536 nodes");
  EXPECT_EQ(bad_nodes("n[0-18446744073709551616]"),
            "the node list \"n[0-18446744073709551616]\": the number 18446744073709551616 is too large");
}

TEST(TasksPerNode, CountsAndRepeats) {
  EXPECT_THAT(parse_tasks_per_node("4"), ElementsAre(4));
  EXPECT_THAT(parse_tasks_per_node("3,1"), ElementsAre(3, 1));
  EXPECT_THAT(parse_tasks_per_node("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(parse_tasks_per_node("1,0(x2),16(x1)"), ElementsAre(1, 0, 0, 16));
}

TEST(TasksPerNode, InvalidListsAreRefused) {
  const std::string what = "the list of tasks per node ";
  EXPECT_EQ(bad_tasks(""), what + "\"\": it ends, but a number is expected");
  EXPECT_EQ(bad_tasks(","), what + "\",\": found \",\", but a number is expected");
  EXPECT_EQ(bad_tasks("2,"), what + "\"2,\": it ends, but a number is expected");
  EXPECT_EQ(bad_tasks("-2"), what + "\"-2\": found \"-2\", but a number is expected");
  EXPECT_EQ(bad_tasks("2("), what + "\"2(\": it ends, but \"x\" is expected");
  EXPECT_EQ(bad_tasks("2(3)"), what + "\"2(3)\": found \"3)\", but \"x\" is expected");
  EXPECT_EQ(bad_tasks("2(x)"), what + "\"2(x)\": found \")\", but a number is expected");
  EXPECT_EQ(bad_tasks("2(x3"), what + "\"2(x3\": it ends, but \")\" is expected");
  EXPECT_EQ(bad_tasks("2(x0)"), what + "\"2(x0)\": a count for 0 nodes");
  EXPECT_EQ(bad_tasks("2 1"), what + "\"2 1\": found \" 1\", but \"(x\" or \",\" is expected");
  EXPECT_EQ(bad_tasks("2(x1000000000)"), what + "\"2(x1000000000)\": more than 65536 nodes");
  EXPECT_EQ(bad_tasks("2147483648"), what + "\"2147483648\": the number 2147483648 is too large");
}

} // namespace
} // namespace triax::launch
