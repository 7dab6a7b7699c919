"""Operations that several methods share."""
