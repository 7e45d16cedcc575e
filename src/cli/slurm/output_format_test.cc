// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/output_format.h"

#include <gtest/gtest.h>

#include <array>

namespace trainyard::cli {
namespace {

struct Pet {
  std::string name;
  double age = 0;
};
constexpr std::array kPetFields{
    OutputField<Pet>{'n', "name", "NAME", [](const Pet& pet) { return pet.name; }},
    OutputField<Pet>{'a', "age", "AGE",
                     [](const Pet& pet) { return std::to_string(static_cast<int>(pet.age)); },
                     [](const Pet& pet) { return pet.age; }},
};
constexpr std::span<const OutputField<Pet>> kOfPets{kPetFields};

std::string Table(const Result<std::vector<OutputColumn<Pet>>>& columns, const Pet& pet) {
  return columns.ok() ? HeadingLine<Pet>(columns.value()) + RowLine<Pet>(columns.value(), pet)
                      : columns.error().message + "\n";
}

TEST(OutputFormatTest, ColumnsAreAsWideAsTheFormatSays) {
  const Pet rex{"Rex the third", 4};
  EXPECT_EQ(Table(ColumnsOfFormat("%.6n|%4a|%a", kOfPets, "pet"), rex),
            "  NAME|AGE |AGE\nRex th|4   |4\n");
  EXPECT_EQ(Table(ColumnsOfFormat("%nx%%", kOfPets, "pet"), rex),
            "Invalid pet format specification: %\n");
  EXPECT_EQ(Table(ColumnsOfFormat("100", kOfPets, "pet"), rex), "100\n100\n") << "no column at all";
  EXPECT_EQ(Table(ColumnsOfFormat("%5", kOfPets, "pet"), rex),
            "Invalid pet format specification:  \n");
}

TEST(OutputFormatTest, ColumnsByNameAreTwentyWideUnlessTheirNameSaysMore) {
  const Pet rex{"Rex", 4};
  EXPECT_EQ(Table(ColumnsOfNames("Name,age:.5", kOfPets, "pet"), rex),
            "NAME                  AGE\nRex                     4\n");
  EXPECT_EQ(Table(ColumnsOfNames("name,legs", kOfPets, "pet"), rex),
            "Invalid pet format specification: legs\n");
}

TEST(OutputFormatTest, RowsAreSortedByNumbersWhereAFieldHasThem) {
  std::vector<Pet> pets{{"b", 10}, {"a", 9}, {"c", 9}};
  const auto names = [&pets] {
    std::string text;
    for (const Pet& pet : pets) {
      text += pet.name;
    }
    return text;
  };
  ASSERT_TRUE(SortRows(pets, "a,-n", kOfPets).ok());
  EXPECT_EQ(names(), "cab");
  ASSERT_TRUE(SortRows(pets, "n", kOfPets).ok());
  EXPECT_EQ(names(), "abc");
  EXPECT_EQ(SortRows(pets, "x", kOfPets).error().message, "there is no column 'x' to sort by");
}

}  // namespace
}  // namespace trainyard::cli
