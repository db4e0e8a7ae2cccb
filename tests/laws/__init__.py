"""Laws that hold for every member, option and question, made from the registries."""
