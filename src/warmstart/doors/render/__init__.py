"""Values as people and programs read them: tables, sentences, JSON."""
